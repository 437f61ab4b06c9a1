"""What the Eureka contract suite speaks to: a server, and a way to let time pass there.

On the embedded server time is a number that is set forward; on a real one it is waited for.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec
from urllib.parse import urlsplit

import requests

from eurekube_sync.embedded.http import LoopbackServer
from tests.contract.otherwise import LINES, Otherwise
from tests.embedded.eureka import FullEureka
from tests.servers.eureka_lines import NEWEST, chosen_lines
from tests.waiting import wait_until

JSON = {"Accept": "application/json"}
Document = dict[str, Any]
_TRIES = 3
_TRY_SECONDS = 180
"""A timed test has failed when it did so in so many tries and for so long: others use the machine
as well, and the renewals of the last minute decide whether a stock server evicts."""
_TICK_SECONDS = 0.2
"""A tick goes through all lists, one after the other."""
_numbers = itertools.count(1)
_P = ParamSpec("_P")


@dataclass(slots=True)
class SetClock:
    """A clock that stands still until it is set forward; begins on a whole minute."""

    time: float = 1_795_248_000.0

    def now(self) -> float:
        return self.time

    def elapse(self, seconds: float) -> None:
        self.time += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaSubject:
    """A server under test. `cache_seconds` is the interval of its response cache."""

    root: str
    now: Callable[[], float]
    elapse: Callable[[float], None]
    cache_seconds: float
    is_real: bool
    path: str = "/eureka"
    """Where the API begins, `/eureka/v2` of Netflix's own server."""
    otherwise: frozenset[Otherwise] = frozenset()
    """What it does otherwise than the newest server."""
    posted: set[tuple[str, str]] = field(default_factory=set)
    """App and id of what was registered."""

    def url(self, path: str) -> str:
        return f"{self.root}{self.path}{path}"

    def get(self, path: str, **headers: str) -> requests.Response:
        return requests.get(self.url(path), headers=JSON | headers, timeout=30)

    def put(self, path: str, **query: str) -> requests.Response:
        return requests.put(self.url(path), params=query, headers=JSON, timeout=30)

    def delete(self, path: str, **query: str) -> requests.Response:
        return requests.delete(self.url(path), params=query, headers=JSON, timeout=30)

    def post(self, app: str, body: Document | str) -> requests.Response:
        if isinstance(body, str):
            headers = JSON | {"Content-Type": "application/json"}
            return requests.post(self.url(f"/apps/{app}"), data=body, headers=headers, timeout=30)
        self.posted.add((app, str(body.get("instanceId") or body.get("hostName"))))
        return requests.post(
            self.url(f"/apps/{app}"), json={"instance": body}, headers=JSON, timeout=30
        )

    def instance(self, app: str, instance_id: str) -> Document:
        """One instance by the uncached read."""
        answer = self.get(f"/apps/{app}/{instance_id}")
        assert answer.status_code == 200
        document = answer.json()["instance"]
        assert isinstance(document, dict)
        return document

    def override(self, instance: Document) -> object:
        """The override that the JSON of an instance tells."""
        lower = Otherwise.NAME_OF_OVERRIDE in self.otherwise
        return instance["overriddenstatus" if lower else "overriddenStatus"]

    def listed(self, app: str) -> list[Document]:
        """The instances of an app by the cached list of everything."""
        applications = self.get("/apps").json()["applications"]["application"]
        return [
            instance
            for each in applications
            if each["name"] == app
            for instance in each["instance"]
        ]

    def wait(self, seconds: float) -> None:
        """Let so much time pass."""
        self.elapse(seconds)

    def to_next_tick(self) -> None:
        """Let the next tick of the response cache come, and be over.

        Ticks begin at a multiple of the interval, and a real timer comes later and later: it is
        watched for by what one write makes of one list. No other list is told otherwise for it once
        the tick is over.
        """
        if not self.is_real:
            now = self.now()
            self.elapse((now // self.cache_seconds + 1) * self.cache_seconds - now + 0.001)
            return
        app = f"TICK{next(_numbers)}"
        assert self.post(app, instance_body(app, "tick")).status_code == 204
        assert self.get(f"/apps/{app}").status_code == 200
        self.delete(f"/apps/{app}/tick")
        wait_until(
            lambda: self.get(f"/apps/{app}").status_code == 404, "the response cache has no ticks"
        )
        time.sleep(_TICK_SECONDS)

    def forget(self) -> None:
        """Cancel all that was posted."""
        while self.posted:
            app, id_ = self.posted.pop()
            self.delete(f"/apps/{app}/{id_}")


def timed(story: Callable[_P, None]) -> Callable[_P, None]:
    """A test of what is so for a second or two of a real server, which it cannot see on a machine
    that stands still meanwhile: when it fails it is told anew, under another app name. One that
    fails always fails."""

    @functools.wraps(story)
    def told(*arguments: _P.args, **fixtures: _P.kwargs) -> None:
        subject = next(one for one in fixtures.values() if isinstance(one, EurekaSubject))
        app = fixtures["app"]
        begun = time.monotonic()
        for number in itertools.count(1):
            try:
                story(*arguments, **(fixtures | {"app": f"{app}T{number}"}))  # type: ignore[arg-type]
            except AssertionError:
                if not subject.is_real or (
                    number >= _TRIES and time.monotonic() - begun > _TRY_SECONDS
                ):
                    raise
                subject.forget()
            else:
                return

    return told


@contextmanager
def embedded_guarded(user: str, password: str) -> Iterator[str]:
    """The URL of an embedded server that asks for a login, and has just started and found no peer
    to copy from."""
    server = FullEureka(SetClock().now, credentials=(user, password), warming_up=True)
    with LoopbackServer(server.handle) as loopback:
        yield f"{loopback.url}/eureka"


@contextmanager
def real_guarded(user: str, password: str) -> Iterator[str]:
    """The same of Spring: with Spring Security, and waiting 5 minutes for peers as Netflix's own
    does after a start. A line other than the newest asks for no login."""
    from tests.servers.eureka import EurekaServer

    class WarmingServer(EurekaServer):
        def _is_ready(self) -> bool:
            return (
                requests.get(f"{self.url}/apps", auth=self.basic_auth, timeout=60).status_code
                == 403
            )

    prefix = "eureka.instance.registry"
    none = {
        f"{prefix}.default-open-for-traffic-count": "0",
        f"{prefix}.expected-number-of-clients-sending-renews": "0",
        "eureka.server.wait-time-in-ms-when-sync-empty": "300000",
    }
    login = (user, password) if chosen_lines()[0] is NEWEST else None
    with WarmingServer(basic_auth=login, extra_properties=none) as server:
        yield server.url


@contextmanager
def embedded(*, stock: bool) -> Iterator[EurekaSubject]:
    """The embedded server behind a socket, with stock or fast timings."""
    clock = SetClock()
    if stock:
        server = FullEureka(clock.now)
    else:
        server = FullEureka(
            clock.now, response_cache_seconds=1, eviction_seconds=1, self_preservation=False
        )
    with LoopbackServer(server.handle) as loopback:
        yield EurekaSubject(
            root=loopback.url,
            now=clock.now,
            elapse=clock.elapse,
            cache_seconds=30 if stock else 1,
            is_real=False,
        )


def real(url: str, *, stock: bool) -> EurekaSubject:
    """A running Eureka server on this machine, so that both clocks agree."""
    parts = urlsplit(url)
    return EurekaSubject(
        root=f"{parts.scheme}://{parts.netloc}",
        path=parts.path,
        otherwise=LINES[chosen_lines()[0].name],
        now=time.time,
        elapse=time.sleep,
        cache_seconds=30 if stock else 1,
        is_real=True,
    )


def instance_body(app: str, instance_id: str, /, **changes: object) -> Document:
    """A register body as design and clients send it; a change to `None` leaves the field out."""
    body: Document = {
        "instanceId": instance_id,
        "hostName": "10.1.2.3",
        "ipAddr": "10.1.2.3",
        "app": app,
        "vipAddress": app.lower(),
        "secureVipAddress": app.lower(),
        "status": "UP",
        "overriddenstatus": "UNKNOWN",
        "port": {"$": 8080, "@enabled": "true"},
        "securePort": {"$": 443, "@enabled": "false"},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 300},
        "metadata": {"eurekube.owner": "prod"},
        "lastDirtyTimestamp": "1795248000785",
    }
    body |= changes
    return {name: value for name, value in body.items() if value is not None}
