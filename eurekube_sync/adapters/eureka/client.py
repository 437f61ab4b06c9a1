"""The `Registry` port on the REST API of one Eureka. There is no `PUT .../status`: it would set a
sticky override."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Self
from urllib.parse import quote

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.exceptions import HTTPError

from eurekube_sync import __version__
from eurekube_sync.adapters.clock import ahead, unix_time
from eurekube_sync.adapters.eureka import answers, replication, wire
from eurekube_sync.adapters.eureka.address import ConnectionOptions
from eurekube_sync.adapters.tls import verify_as_kubectl
from eurekube_sync.adapters.tries import (
    CHUNK,
    NO_ANSWER,
    AnswerTime,
    Tries,
    TryResult,
    bound_answers,
    read_whole,
)
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import (
    RegistryError,
    RegistryUnavailable,
    RegistryUnusable,
    unknown_from,
)
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Clock, Random, Registry
from eurekube_sync.model.sources import Complete, Source
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted

# An id that no instance has; any login that may read may read it
_PROBE = "/instances/eurekube-sync-probe"
_PROBE_APP = "EUREKUBE-SYNC-PROBE"
_PROBE_ID = "eurekube-sync-probe"
_NOBODY = f"/apps/{_PROBE_APP}/{_PROBE_ID}"  # the same, to be renewed
_INCOMPLETE = f'{{"instance":{{"instanceId":"{_PROBE_ID}","app":"{_PROBE_APP}"}}}}'.encode()
_FRESH = "eurekube-sync"  # the query that differs in each GET
_PROBE_SECONDS = 5.0  # how long the result of a probe is used
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "Cache-Control": "no-cache",
    "DiscoveryIdentity-Name": "eurekube-sync",
    "User-Agent": f"eurekube-sync/{__version__}",
}
_log = logging.getLogger(__name__)


class EurekaClient(Registry):
    """Calls one Eureka server. Safe in `options.concurrency` threads."""

    def __init__(
        self,
        options: ConnectionOptions,
        *,
        clock: Clock,
        random: Random,
        adapter: BaseAdapter | None = None,
        session: requests.Session | None = None,
        limit: TimeLimit | None = None,
        count: Callable[[str], None] = lambda _: None,
        decoded: wire.Decoded | None = None,
    ) -> None:
        """Let tests replace the network by `adapter` or `session`. Several servers share `decoded`."""
        self._options = options
        self._decoded = decoded or wire.Decoded()
        self._clock = clock
        bounds = limit or TimeLimit(clock)
        self._tries = Tries(
            clock, random, bounds, options.answer_timeout, most=options.retries + 1, count=count
        )
        self._login = options.credentials
        self._session = _prepared(session or _Session(), options, adapter)
        self._probing = threading.Lock()
        # When reads were last probed, and whether they worked
        self._probed: tuple[float, bool] | None = None
        self._judging = threading.Lock()
        # Whether a 200 to a write can be believed; None: nothing shows it yet
        self._means_it: bool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """Call `ApplicationsResource.getContainers`; anything but a whole registry is Unknown."""
        self._means_it = None
        try:
            answer = self._call("GET", "/apps")
            refused = answer.status == 403 and answer.may_be_eurekas
            if refused and self._call("GET", _PROBE).is_eurekas_404:
                raise answers.refused_though_reads_work(answer)
            listed = wire.decode_list(self._expect(answer, 200, json=True), self._decoded)
        except RegistryError as error:
            return unknown_from(error)
        self._means_it = True
        if listed.malformed:
            shown = ", ".join(listed.malformed[:3])
            number = counted(len(listed.malformed), "instance")
            _log.warning("%s in Eureka, not ours, cannot be read completely: %s", number, shown)
        return Complete(data=listed.instances)

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """Call `InstanceResource.getInstanceInfo`, which no cache answers."""
        answer = self._call("GET", _instance_path(key))
        if self._is_absence(answer, replication.question(key)):
            return None
        observed = wire.decode_instance(self._expect(answer, 200, json=True))
        if observed.key != InstanceKey(key.app.upper(), key.id):
            raise RegistryUnusable(
                f"{answer.call} was answered with another instance, {observed.key}: a cache is "
                "broken"
            )
        answered = unix_time(answer.headers.get("Date", "")) or 0.0
        return replace(observed, read_at=int(answered * 1000))

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        """Call `ApplicationResource.addInstance`. A repetition is harmless: Eureka accepts an equal
        timestamp."""
        body = wire.encode_instance(instance, dirty_timestamp=dirty_timestamp)
        path = f"/apps/{quote(instance.key.app, safe='')}"
        self._expect(self._call("POST", path, body), 204, 200)

    def renew(self, key: InstanceKey) -> bool:
        return self._write("PUT", key, replication.heartbeat(key))

    def cancel(
        self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool] | None = None
    ) -> bool:
        """Cancel; `ours` is used only with several servers."""
        return self._write("DELETE", key, replication.question(key))

    def try_registration(self) -> None:
        """Raise a RegistryError unless registrations reach Eureka.

        One without a host name is sent. Eureka refuses it with a 400, and registers nothing
        (`ApplicationResource.addInstance`). Where a proxy puts a page in place of the 400, a batch
        has to get through."""
        answer = self._call("POST", f"/apps/{_PROBE_APP}", _INCOMPLETE)
        if answer.status == 400 and answer.is_page:
            probe = replication.heartbeat(InstanceKey(_PROBE_APP, _PROBE_ID))
            if self.replicate([probe]) == [404]:
                return
        self._expect(answer, 400)

    def replicate(self, items: Sequence[bytes]) -> list[int]:
        """Call `PeerReplicationResource.batchReplication`; return one status code for each item."""
        return replication.decode_answers(self._send_batch(items), items=len(items))

    def read_instances(self, items: Sequence[bytes]) -> list[ObservedInstance | None]:
        """Send a batch of `replication.reading`; return the instance that each answer shows."""
        return replication.decode_readings(self._send_batch(items), items=len(items))

    def _send_batch(self, items: Sequence[bytes]) -> bytes:
        body = b'{"replicationList":[' + b",".join(items) + b"]}"
        answer = self._call("POST", "/peerreplication/batch/", body)
        return self._expect(answer, 200, json=True)

    def server_status(self) -> replication.ServerStatus:
        """Call `StatusResource.getStatusInfo`. It is read as XML, because as JSON it is a 500."""
        answer = self._call("GET", "/status", accept="application/xml")
        return replication.decode_status(self._expect(answer, 200))

    def ahead(self) -> float:
        begun = self._clock.now()
        answer = self._call("GET", _PROBE)
        seconds = ahead(answer.headers.get("Date", ""), begun, self._clock.now())
        if seconds is None:
            raise RegistryUnusable(f"{answer.call} was answered without the time (Date)")
        return seconds

    def _write(self, method: str, key: InstanceKey, question: bytes) -> bool:
        answer = self._call(method, _instance_path(key))
        if self._is_absence(answer, question):
            return False
        self._expect(answer, 200)
        error = answers.not_written(answer)
        if error is not None:
            raise error
        self._believe(answer)
        return True

    def _is_absence(self, answer: answers.Answer, question: bytes) -> bool:
        """Return whether this is the 404 of an instance that Eureka does not have.

        A proxy may put its own page in place of Eureka's 404, and also answers so itself. Then
        Eureka is asked again by a batch of one item: its answer is a 200 with the code in the body,
        which proxies pass on."""
        if answer.status != 404:
            return False
        if answer.is_eurekas_404:
            return True
        try:
            codes = self.replicate([question])
        except RegistryError as error:
            raise answers.hidden_by_proxy(answer) from error
        if codes != [404]:
            raise answers.hidden_by_proxy(answer)
        return True

    def _believe(self, answer: answers.Answer) -> None:
        """Raise RegistryUnusable if a 200 to a write means nothing. A server that gives a list is
        believed until its next list. Any other one is asked to renew an instance that cannot exist,
        which Eureka answers with a 404."""
        if self._means_it:
            return
        with self._judging:
            if self._means_it is None:
                status = self._call("PUT", _NOBODY).status
                if status in (200, 404):
                    self._means_it = status == 404
            if self._means_it is False:
                raise answers.agrees_to_everything(answer)

    def _expect(self, answer: answers.Answer, *statuses: int, json: bool = False) -> bytes:
        """Return the body, or raise what another status or a web page means."""
        if answer.status not in statuses:
            raise self._refusal(answer)
        if json or answer.is_page:
            error = answers.unreadable(answer)
            if error is not None:
                raise error
        return answer.body

    def _refusal(self, answer: answers.Answer) -> RegistryError:
        """Return what this status means. For a write that depends on whether reads work, which is
        asked only then."""
        login = self._login() if self._login else None
        if answer.method != "GET":
            refusals = (401, 403) if login else (403,)
            # Only with a login does CSRF protection end in a 401; without one, it asks for one.
            refused = answer.status in refusals and answer.may_be_eurekas
            if refused and self._may_read():
                return answers.refused_though_reads_work(answer)
            if answer.status == 404 and self._may_read():
                return answers.not_found_though_reads_work(answer)
        return answers.refusal(answer, login)

    def _may_read(self) -> bool:
        """Return whether reads work, by a probe every few seconds at most. Where a proxy hides
        Eureka's 404, a list has to have shown it."""
        with self._probing:
            now = self._clock.monotonic()
            if self._probed is None or now - self._probed[0] >= _PROBE_SECONDS:
                self._probed = now, self._reads_work()
            return self._probed[1]

    def _reads_work(self) -> bool:
        try:
            answer = self._call("GET", _PROBE)
        except RegistryError:
            return False
        return answer.is_eurekas_404 or (answer.status == 404 and self._means_it is True)

    def _call(
        self, method: str, path: str, body: bytes | None = None, *, accept: str = ""
    ) -> answers.Answer:
        """Make a call, with further tries; return the last answer, or raise its error."""
        call = f"{method} {self._options.address.url}{path}"

        def once(within: AnswerTime) -> TryResult[answers.Answer]:
            try:
                answer = self._send(method, path, body, within, accept)
            except (OSError, HTTPError, ValueError) as failed:
                self._tries.count(NO_ANSWER)
                error, again = answers.failure(failed, call)
                error.__cause__ = failed
                return error, "" if again else None
            self._tries.count(str(answer.status))
            if answer.status in answers.TRANSIENT:
                return answer, answer.headers.get("Retry-After", "")
            return answer, None

        return self._tries.call(once, lambda why: RegistryUnavailable(f"{call} {why}"))

    def _send(
        self, method: str, path: str, body: bytes | None, within: AnswerTime, accept: str
    ) -> answers.Answer:
        options = self._options
        url = target = options.address.url + path
        if method == "GET":
            # A cache on the way may answer a GET for minutes. Eureka ignores the query, and no
            # cache has an answer for it.
            target = f"{url}?{_FRESH}={int(self._clock.now() * 1_000_000)}"
        headers: dict[str, str] = {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if accept:
            headers["Accept"] = accept
        timeout = (within.bounded(options.connect_timeout), within.bounded(options.read_timeout))
        settings: dict[str, Any] = {"timeout": timeout, "allow_redirects": False, "stream": True}

        def too_large(why: str) -> RegistryUnusable:
            return RegistryUnusable(f"{method} {url} {why}: {answers.CHECK_THE_URL}")

        with (
            within.running(),
            self._session.request(
                method, target, data=body, headers=headers, **settings
            ) as response,
        ):
            received = read_whole(response.iter_content(CHUNK), too_large)
        return answers.Answer(method, url, response.status_code, response.headers, received)


class _Session(requests.Session):
    """Ignores redirects. With a broken target, `requests` would raise and never free the
    connection."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class _Pool(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        verify_as_kubectl(self.poolmanager)
        bound_answers(self.poolmanager)


def _prepared(
    session: requests.Session, options: ConnectionOptions, adapter: BaseAdapter | None
) -> requests.Session:
    session.trust_env = False
    session.headers.clear()
    session.headers.update(_HEADERS)
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.verify = options.ca_file or True
    session.cert = options.client_certificate
    login = options.credentials
    if login is not None:

        def authorized(request: Any) -> Any:
            # Read for each call, because a password or token may change
            request.headers["Authorization"] = login().header
            return request

        session.auth = authorized
    pool = adapter or _Pool(pool_connections=1, pool_maxsize=options.concurrency, pool_block=True)
    session.mount("http://", pool)
    session.mount("https://", pool)
    return session


def _instance_path(key: InstanceKey) -> str:
    return f"/apps/{quote(key.app, safe='')}/{quote(key.id, safe=':')}"
