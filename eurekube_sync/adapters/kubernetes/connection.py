"""Connections to the Kubernetes API by the official client, imported when needed: its service
accounts, TLS, proxies and connection pool, but not its call methods, which differ in its versions
35, 36 and 37. It would log a credentials program that fails, and call anonymously, so we run the
program ourselves (`credentials`)."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Future
from contextlib import closing
from importlib.util import find_spec, module_from_spec
from math import inf
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode

from msgspec import Struct, field

from eurekube_sync import __version__
from eurekube_sync.adapters.kubernetes.credentials import NO_CREDENTIALS, PROGRAM, credentials_of
from eurekube_sync.adapters.kubernetes.kubeconfig import DEFAULT_PATH, Chosen, choose, first_line
from eurekube_sync.adapters.no_answer import no_answer, proxy_named
from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.adapters.tls import verify_as_kubectl
from eurekube_sync.adapters.tries import CHUNK, AnswerTime, bound_answers, read_whole
from eurekube_sync.model.errors import (
    ClusterCredentialsMissing,
    ClusterTooLarge,
    ClusterUnavailable,
    ConfigurationError,
)
from eurekube_sync.model.sanitize import header_secrets
from eurekube_sync.model.struct import Hidden


class Call(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Answer(Hidden, Struct, frozen=True, kw_only=True):
    status: int
    body: bytes  # decompressed
    retry_after: str = ""  # the header
    date: str = ""  # the header
    # Of the call, because the answer may repeat them
    secrets: tuple[str, ...] = ()


class Connection(Protocol):  # safe in several threads
    @property
    def server(self) -> str: ...  # for messages

    def send(self, call: Call, within: AnswerTime) -> Answer:
        """Try once. Raise ClusterUnavailable without a whole answer in time, ClusterTooLarge for
        one too large."""

    def renew(self, within: AnswerTime) -> None:
        """Load the credentials again, after a 401. Raise ConfigurationError, or
        ClusterCredentialsMissing."""


class ConnectionSettings(Struct, frozen=True, kw_only=True):
    # One path or several; empty: in-cluster, else KUBECONFIG, else ~/.kube/config
    kubeconfig: str = ""
    # Of the kubeconfig; empty: its current one. A context rules out the in-cluster configuration
    context: str = ""
    connect_seconds: float = 5.0
    read_seconds: float = 30.0  # the longest silence; `Tries.answer_seconds` is for a whole answer
    threads: int = 8
    # For the kubeconfig's program for credentials, which may ask a person
    start_seconds: float = 180.0
    hang_seconds: float = 180.0  # after which a hanging program is started again; doubled each time
    again_seconds: float = 5.0  # in which a program does not run twice: shorter than a usual pass


_log = logging.getLogger(__name__)
_FRESH_SECONDS = 1.0  # how long credentials are used unchecked, because a check takes a thread


class _Loaded(NamedTuple):
    configuration: Any
    pool: Any
    reload_at: float = inf  # monotonic seconds; infinite: only after a 401
    missing: str = ""  # why there are no credentials, without which nothing is called
    headers: Mapping[str, str] = {}  # with the credentials
    proxy: str = ""  # the proxy, as a message names it


class _Reading(NamedTuple):
    anew: bool  # whether the configuration is loaded, too
    call: Future[_Loaded]
    begun: float


class ClientConnection:
    def __init__(
        self, settings: ConnectionSettings, environ: Mapping[str, str] = os.environ
    ) -> None:
        """Load the configuration, and send nothing. Raise ConfigurationError."""
        self._settings = settings
        self._paths = settings.kubeconfig or environ.get("KUBECONFIG") or DEFAULT_PATH
        asked = settings.kubeconfig or settings.context
        self._in_cluster = not asked and bool(environ.get("KUBERNETES_SERVICE_HOST"))
        self._lock = threading.Lock()
        self._reading: _Reading | None = None  # the current one, or the last
        self._patience = settings.hang_seconds
        self._refreshed = -inf  # when the headers were last read, in monotonic seconds
        self._warned_unverified = False
        self._by_program = False  # whether a program of the kubeconfig gives the credentials
        first = in_side_thread(self._load)
        if not futures.wait([first], settings.start_seconds).done:
            raise ConfigurationError(
                f"the credentials of the kubeconfig did not come in {settings.start_seconds:g} s: "
                f"{self._hanging}"
            )
        self._loaded = first.result()

    @property
    def server(self) -> str:
        return str(self._loaded.configuration.host)

    def renew(self, within: AnswerTime) -> None:
        self._read(within, anew=True)

    def send(self, call: Call, within: AnswerTime) -> Answer:
        import urllib3

        loaded = self._current(within)
        if loaded.missing:
            raise ClusterCredentialsMissing(loaded.missing)
        host = loaded.configuration.host
        headers = {
            "Accept": call.accept,
            "Accept-Encoding": "gzip",
            "User-Agent": f"eurekube-sync/{__version__}",
            **loaded.headers,
        }
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        timeout = urllib3.Timeout(
            connect=within.bounded(self._settings.connect_seconds),
            read=within.bounded(self._settings.read_seconds),
        )

        def too_large(why: str) -> ClusterTooLarge:
            return ClusterTooLarge(f"{call} to the Kubernetes API at {host} {why}")

        try:
            with within.running():
                response = loaded.pool.request(
                    call.method,
                    f"{host}{call.path}?{urlencode(call.query)}".rstrip("?"),
                    body=call.body,
                    headers=headers,
                    timeout=timeout,
                    preload_content=False,
                    retries=False,
                    redirect=False,
                )
                with closing(response):
                    chunks = response.stream(CHUNK, decode_content=True)
                    body = read_whole(chunks, too_large)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # ValueError: of a chunk of -5 bytes
            why = no_answer(error, proxy=loaded.proxy).why
            raise ClusterUnavailable(
                f"no answer from the Kubernetes API at {host} to {call}: {why}"
            ) from error
        secrets: list[str] = []
        for value in loaded.headers.values():
            secrets += header_secrets(value)
        return Answer(
            status=int(response.status),
            body=body,
            retry_after=response.headers.get("Retry-After") or "",
            date=response.headers.get("Date") or "",
            secrets=tuple(secrets),
        )

    def _current(self, within: AnswerTime) -> _Loaded:
        """Return what was loaded, with credentials of this moment."""
        now = time.monotonic()
        ended = now >= self._loaded.reload_at
        if not ended and now - self._refreshed < _FRESH_SECONDS:
            return self._loaded
        try:
            return self._read(within, anew=ended)
        except ConfigurationError as error:  # the kubeconfig has changed
            raise ClusterCredentialsMissing(f"{NO_CREDENTIALS}: {error}") from error

    def _read(self, within: AnswerTime, *, anew: bool) -> _Loaded:
        """Return the current credentials. One thread at a time reads them, as the client's hook
        requires. If a program hangs, all is loaded again after a while, so that nothing is shared
        with that program."""
        while True:
            reading = self._under_way(anew)
            try:
                within.wait_for(reading.call, self._settings.read_seconds)
            except TimeoutError:
                cut_short = within.over and not within.within_limit
                if cut_short and not self._by_program:  # a token is read at once
                    raise ClusterUnavailable("no time was left for it") from None
                raise ClusterCredentialsMissing(f"{NO_CREDENTIALS}: {self._hanging}") from None
            if reading.anew == anew:
                return reading.call.result()

    @property
    def _hanging(self) -> str:
        if self._by_program:
            return f"{PROGRAM} has not ended"
        return "reading them takes too long"

    def _under_way(self, anew: bool) -> _Reading:
        """Return the reading that is under way, or start one."""
        with self._lock:
            before = self._reading
            if before is not None and not before.call.done():
                if time.monotonic() - before.begun < self._patience:
                    return before
                self._patience *= 2
                anew = True
            begun = time.monotonic()
            call = in_side_thread(lambda: self._credentials_of_now(anew, begun))
            self._reading = _Reading(anew, call, begun)
            return self._reading

    def _credentials_of_now(self, anew: bool, begun: float) -> _Loaded:
        """Read the credentials, and keep them unless another reading was started meanwhile."""
        loaded = self._load() if anew else self._loaded
        if not loaded.missing:
            loaded = loaded._replace(headers=_headers(loaded.configuration))
        with self._lock:
            if self._reading and self._reading.begun == begun:
                self._loaded = loaded
                self._patience = self._settings.hang_seconds
                self._refreshed = time.monotonic()
        return loaded

    def _load(self) -> _Loaded:
        """Load the configuration, and the credentials if there are any. Raise
        ConfigurationError."""
        _import_no_more_than_is_used()
        if self._in_cluster:
            from kubernetes.config.incluster_config import load_incluster_config

            what = "this runs in a cluster, but its service account"
            return self._connected(what, load_incluster_config)
        chosen = choose(self._paths, self._settings.context)
        self._by_program = "exec" in chosen.user or "auth-provider" in chosen.user
        # Faults of the cluster end a start. Faults of the credentials may pass by themselves, and a
        # daemon waits for that.
        without = self._of_kubeconfig(chosen, {})
        again_at = time.monotonic() + self._settings.again_seconds
        try:
            credentials = credentials_of(chosen.user, chosen.cluster, self._settings.again_seconds)
            loaded = self._of_kubeconfig(chosen, credentials.user)
            if "auth-provider" in chosen.user and not loaded.configuration.api_key:
                raise ConfigurationError(
                    "the kubeconfig's auth-provider gives none; kubectl has a program (exec) in "
                    "its place"
                )
        except ConfigurationError as error:
            return without._replace(reload_at=again_at, missing=f"{NO_CREDENTIALS}: {error}")
        except ClusterCredentialsMissing as error:
            return without._replace(reload_at=again_at, missing=str(error))
        ends_at = time.monotonic() + (credentials.until - time.time())
        return loaded._replace(reload_at=max(ends_at, again_at))

    def _of_kubeconfig(self, chosen: Chosen, user: Mapping[str, Any]) -> _Loaded:
        """Connect as this user of the kubeconfig."""
        from kubernetes.config.kube_config import load_kube_config_from_dict

        proxy = str(chosen.cluster.get("proxy-url") or "")

        def load(*, client_configuration: Any) -> None:
            load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                chosen.document(user),
                client_configuration=client_configuration,
                persist_config=False,
            )
            if proxy:  # version 35 leaves it out
                client_configuration.proxy = proxy
            host = client_configuration.host
            if not host.startswith(("http://", "https://")):
                raise ConfigurationError(
                    f"the kubeconfig {self._paths} names the server {host}, which lacks https:// "
                    "before it"
                )

        loaded = self._connected(f"the kubeconfig {self._paths}", load)
        if proxy and loaded.proxy:
            return loaded._replace(proxy=proxy_named(proxy, "proxy-url in the kubeconfig"))
        return loaded

    def _connected(self, what: str, load: Callable[..., None]) -> _Loaded:
        """Return a pool of connections as `load` configures it."""
        from kubernetes.client.configuration import Configuration
        from kubernetes.client.rest import RESTClientObject

        configuration: Any = Configuration()
        try:
            load(client_configuration=configuration)
            configuration.retries = False
            configuration.connection_pool_maxsize = self._settings.threads
            rest: Any = RESTClientObject(configuration)
        except ConfigurationError:
            raise
        except Exception as error:
            verb = "read" if isinstance(error, OSError) else "used"
            raise ConfigurationError(f"{what} cannot be {verb}: {first_line(error)}") from error
        verify_as_kubectl(rest.pool_manager)
        bound_answers(rest.pool_manager)
        self._warn_unverified(configuration)
        loaded = _Loaded(configuration, rest.pool_manager)
        if rest.pool_manager.proxy is None:  # NO_PROXY may rule it out
            return loaded
        origin = _variable_with(configuration.proxy)
        return loaded._replace(proxy=proxy_named(configuration.proxy, origin))

    def _warn_unverified(self, configuration: Any) -> None:
        """Warn once; urllib3 would warn at every call."""
        import urllib3

        if configuration.verify_ssl or not configuration.host.startswith("https://"):
            return
        warnings.filterwarnings("ignore", category=urllib3.exceptions.InsecureRequestWarning)
        if not self._warned_unverified:
            self._warned_unverified = True
            _log.warning(
                "the Kubernetes API's certificate is not verified (insecure-skip-tls-verify): "
                "anybody in between can read the credentials and change what is read; give "
                "certificate-authority in the kubeconfig instead"
            )


def _import_no_more_than_is_used() -> None:
    """Import the client's packages without their imports, such as pydantic, OAuth and web sockets:
    a pod uses none of them, and in a CronJob they would delay each pass."""
    for name in ("kubernetes", "kubernetes.config"):
        if name in sys.modules:
            continue
        spec = find_spec(name)
        if spec is not None:
            sys.modules[name] = module_from_spec(spec)


def _variable_with(proxy: str) -> str:
    """Return the name of the environment variable that holds this proxy. Lower case comes first, as
    in `urllib.request.getproxies`."""
    for name in ("https_proxy", "http_proxy", "all_proxy"):
        for spelling in (name, name.upper()):
            if os.environ.get(spelling) == proxy:
                return spelling
    return "the environment"


def _headers(configuration: Any) -> Mapping[str, str]:
    """Return the headers with the credentials, without a line end after a token, as kubectl
    does."""
    try:
        settings = configuration.auth_settings()
    except Exception as error:
        why = first_line(error)
        raise ClusterUnavailable(
            f"the credentials for the Kubernetes API cannot be read: {why}"
        ) from error
    headers: dict[str, str] = {}
    for setting in settings.values():
        if setting["in"] == "header":
            headers[setting["key"]] = setting["value"].strip()
    for value in headers.values():
        if not value.isascii() or not value.isprintable():  # the pool's error would show it
            raise ClusterUnavailable(
                "the credentials for the Kubernetes API hold a character that no header may have"
            )
    for value in headers.values():
        if value.lower() == "bearer":  # to the API, as if there were no header
            raise ClusterCredentialsMissing(f"{NO_CREDENTIALS}: the token is empty")
    return headers
