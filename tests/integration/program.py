"""The program as a process. Every call to the servers is counted on its way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import requests
from requests.adapters import HTTPAdapter

from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from tests import planted
from tests.integration import forked
from tests.servers.world import write_kubeconfig
from tests.waiting import wait_until

_NUDGE_SECONDS = 5.0
_RUNS_UNTIL_NUDGE = 4
_RUN_SECONDS = 300.0
_STATE_SECONDS = 400.0
"""The time for runs to reach a state. A list that nobody nudges can be wrong for 180 s."""
_PIPE_BYTES = 1 << 20
"""The output that a process may write before somebody reads it. With a full pipe it would block."""
_PASSED_ON = ("accept", "authorization", "content-type", "user-agent", "discoveryidentity-name")


class Moment(NamedTuple):
    """A call with the times of its arrival and of its answer, by `time.monotonic`."""

    asked: float
    answered: float
    call: Request


class CountingProxy:
    """Forwards calls to one server and remembers each of them. It is a context manager, and hangs
    up when the server is down."""

    def __init__(
        self,
        upstream: str,
        *,
        ca_file: Path | None = None,
        before: Callable[[Request], None] | None = None,
    ) -> None:
        """`before` gets each call before it is forwarded, in the call's thread."""
        self._upstream = upstream.rstrip("/")
        self._before = before
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.mount("https://", HTTPAdapter(pool_maxsize=64))
        self._session.mount("http://", HTTPAdapter(pool_maxsize=64))
        self._session.verify = str(ca_file) if ca_file else True
        self._server = LoopbackServer(self._forward)
        self.calls: list[Request] = []
        self.moments: list[Moment] = []
        """Each answered call, which `clear` keeps."""

    @property
    def url(self) -> str:
        """The proxy's own address."""
        return self._server.url

    def methods(self) -> Counter[str]:
        """How many calls of each method came since the last `clear`."""
        return Counter(call.method for call in self.calls)

    def clear(self) -> None:
        """Restart the count."""
        self.calls.clear()

    def _forward(self, request: Request) -> Response:
        asked = time.monotonic()
        self.calls.append(request)
        planted.search_call(request)
        if self._before is not None:
            self._before(request)
        try:
            answer = self._session.request(
                request.method,
                self._upstream + request.path,
                params=dict(request.query),
                data=request.body or None,
                headers={
                    name: value for name, value in request.headers.items() if name in _PASSED_ON
                },
                timeout=30,
                allow_redirects=False,
            )
        except requests.ConnectionError as error:
            raise ConnectionResetError from error
        self.moments.append(Moment(asked, time.monotonic(), request))
        return Response(
            status=answer.status_code,
            body=answer.content,
            content_type=answer.headers.get("Content-Type", ""),
        )

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.__exit__(kind, error, trace)


@dataclass(kw_only=True)
class Program:
    """`eurekube-sync` between two counting proxies. Each `run` is a process of its own."""

    kubernetes: CountingProxy
    eureka: CountingProxy
    eureka_path: str = "/eureka"
    """`/eureka/v2` of Netflix's own server."""
    token: str
    folder: Path
    owner: str
    options: tuple[str, ...] = ()
    batch: str = "off"
    """`--eureka-batch`. It is off, so that each call is for one instance."""
    registry: Registry | None = None
    """The server, which is nudged only if it is given."""
    seen: list[str] = field(default_factory=list)

    def run(self, *options: str, timeout: float = _RUN_SECONDS) -> subprocess.CompletedProcess[str]:
        """Make one `run`. The calls are counted from zero, and no exit code raises an error."""
        environment = self._environment()
        done = forked.run(["run", *self.options, *options], environment, timeout=timeout)
        self.seen.append(done.stdout + done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def start(self, *options: str, command: str = "run") -> subprocess.Popen[str]:
        """Start a `run` that goes on, or another command. The calls are counted from zero."""
        return subprocess.Popen(
            [Path(sys.executable).with_name("eurekube-sync"), command, *self.options, *options],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pipesize=_PIPE_BYTES,
            text=True,
        )

    def _environment(self) -> dict[str, str]:
        """The variables of a process, with a kubeconfig written for it; count calls from zero."""
        kubeconfig = write_kubeconfig(
            self.folder / "kubeconfig", url=self.kubernetes.url, token=self.token
        )
        self.kubernetes.clear()
        self.eureka.clear()
        url = planted.with_login(f"{self.eureka.url}{self.eureka_path}")
        return forked.environment(
            EUREKUBE_SYNC_OWNER=self.owner,
            EUREKUBE_SYNC_EUREKA_URL=url,
            EUREKUBE_SYNC_EUREKA_BATCH=self.batch,
            EUREKUBE_SYNC_DEBUG="1",
            KUBECONFIG=str(kubeconfig),
            **planted.PROXIES,
        )

    def good(self, *options: str) -> dict[str, Any]:
        """Make one `run`, which has to exit with 0; returns its report."""
        done = self.run("-o", "json", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def run_until(self, reached: Callable[[], bool]) -> int:
        """Make runs, each in a process of its own, until the state is reached; returns their
        number."""
        deadline = time.monotonic() + _STATE_SECONDS
        runs = 0
        while True:
            self.good()
            runs += 1
            if reached():
                return runs
            assert time.monotonic() < deadline, (
                f"not reached within {_STATE_SECONDS:g} s:\n{self.seen[-1]}"
            )
            if self.registry is not None and runs > _RUNS_UNTIL_NUDGE:
                self.registry.nudge()
            time.sleep(0.5)


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Reads a Eureka server from outside, by uncached reads."""

    url: str

    def status(self, app: str, id_: str) -> str | None:
        """The effective status of an instance. None means that it is not there."""
        instance = self.instance(app, id_)
        return str(instance["status"]) if instance else None

    def instance(self, app: str, id_: str) -> dict[str, Any] | None:
        """One instance, by an uncached read."""
        answer = requests.get(
            f"{self.url}/apps/{app}/{id_}", headers={"Accept": "application/json"}, timeout=30
        )
        if answer.status_code != 200:
            return None
        return _of_today(answer.json()["instance"])

    def listed(self, owner: str) -> dict[str, str]:
        """Id and status of an owner's instances in the list of all, as old as the server's
        cache."""
        answer = requests.get(
            f"{self.url}/apps", headers={"Accept": "application/json"}, timeout=30
        )
        instances = [
            i for app in answer.json()["applications"]["application"] for i in app["instance"]
        ]
        return {
            i["instanceId"]: i["status"]
            for i in instances
            if i["metadata"].get("eurekube.owner") == owner
        }

    def clear(self, session: requests.Session) -> None:
        """Cancel every instance with an owner's mark, and wait until the list shows that. A program
        beside another owner of the same syncers would be refused.

        The list may not yet show what a test registered last. Eureka caches no list for an unknown
        region, so a list for one shows everything.
        """

        def marked(**params: str) -> list[tuple[str, str]]:
            answer = session.get(f"{self.url}/apps", params=params, timeout=30)
            instances = [
                i for app in answer.json()["applications"]["application"] for i in app["instance"]
            ]
            return [
                (i["app"], i["instanceId"]) for i in instances if "eurekube.owner" in i["metadata"]
            ]

        def cleared() -> bool:
            registered = marked(regions=uuid.uuid4().hex)
            for app, id_ in registered:
                session.delete(f"{self.url}/apps/{app}/{id_}", timeout=30)
            return not registered and not marked()

        wait_until(cleared, lambda: f"{marked()} did not go")

    def listed_hosts(self, app: str) -> list[str]:
        """The host names of an app's UP instances in the list of all, sorted; as old as the
        server's cache."""
        answer = requests.get(
            f"{self.url}/apps", headers={"Accept": "application/json"}, timeout=30
        )
        apps = [
            listed
            for listed in answer.json()["applications"]["application"]
            if listed["name"] == app
        ]
        return sorted(
            i["hostName"] for listed in apps for i in listed["instance"] if i["status"] == "UP"
        )

    def list_follows(self, app: str, ids: Iterable[str]) -> None:
        """Wait until the list of all agrees with uncached reads about these instances of an app:
        status, metadata, time of the last change, or absence. A renewal is not visible in it."""
        wanted = tuple(ids)

        def differences() -> list[tuple[str, Any, Any]]:
            answer = requests.get(
                f"{self.url}/apps", headers={"Accept": "application/json"}, timeout=30
            )
            apps = [
                listed
                for listed in answer.json()["applications"]["application"]
                if listed["name"] == app
            ]
            listed: dict[str, Any] = {}
            for of_the_app in apps:
                for instance in of_the_app["instance"]:
                    listed[instance["instanceId"]] = _told(_of_today(instance))
            found = [(id_, listed.get(id_), _told(self.instance(app, id_))) for id_ in wanted]
            return [(id_, old, new) for id_, old, new in found if old != new]

        self.wait_for_list(
            lambda: not differences(),
            lambda: f"(id, what the list tells, what a read tells): {differences()}",
        )

    def wait_for_list(
        self, reached: Callable[[], bool], tell: str | Callable[[], str], *, app: str = "NUDGE"
    ) -> None:
        """Wait until a list, which is as old as the server's cache, shows something.

        After a while the server is nudged. `app` is for the list of an app, or of its VIP.
        """
        nudged = time.monotonic()

        def nudging() -> bool:
            nonlocal nudged
            if time.monotonic() > nudged + _NUDGE_SECONDS:
                nudged = time.monotonic()
                self.nudge(app)
            return reached()

        wait_until(nudging, tell)

    def nudge(self, app: str = "NUDGE") -> None:
        """Make a write that changes nothing in the end. A list that was loaded while instances
        changed can be wrong until the next one, or for 180 s
        (`responseCacheAutoExpirationInSeconds`). Emptying a cache does not reach what is being
        loaded into it."""
        self.register(app, "nudge", "192.0.2.9")
        requests.delete(f"{self.url}/apps/{app}/nudge", timeout=30)

    def register(
        self,
        app: str,
        id_: str,
        ip: str,
        *,
        port: int = 8080,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        """Register an instance of others, with a long lease."""
        body = {
            "instance": {
                "instanceId": id_,
                "hostName": ip,
                "ipAddr": ip,
                "app": app,
                "vipAddress": app.lower(),
                "status": "UP",
                "port": {"$": port, "@enabled": "true"},
                "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 3600},
                "dataCenterInfo": {
                    "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                    "name": "MyOwn",
                },
                "metadata": metadata or {"colour": "blue"},
            }
        }
        requests.post(f"{self.url}/apps/{app}", json=body, timeout=30).raise_for_status()


def _of_today(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of an instance with the names of today: Spring Cloud Edgware writes
    `overriddenstatus`."""
    renamed = dict(instance)
    if "overriddenstatus" in renamed:
        renamed["overriddenStatus"] = renamed.pop("overriddenstatus")
    return renamed


def _told(instance: dict[str, Any] | None) -> dict[str, Any] | None:
    """The parts of an instance that a new list shows at once."""
    names = ("status", "overriddenStatus", "metadata", "lastDirtyTimestamp")
    return {name: instance.get(name) for name in names} if instance else None
