"""Connections to the Kubernetes API by the official client, imported when needed: its kubeconfig, exec plugins, tokens,
TLS, proxies and connection pool, but not its call methods, which differ in its versions 35, 36 and 37."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from concurrent import futures
from concurrent.futures import Future
from contextlib import closing
from dataclasses import field
from importlib.util import find_spec, module_from_spec
from math import inf
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode

from eurekube_sync import __version__
from eurekube_sync.adapters.kubernetes.kubeconfig import DEFAULT_PATH, first_line, names_program
from eurekube_sync.adapters.no_answer import no_answer
from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.adapters.tries import CHUNK, AnswerTime, bound_answers, read_whole
from eurekube_sync.model.errors import ClusterCredentialsLate, ClusterTooLarge, ClusterUnavailable, ConfigurationError
from eurekube_sync.model.foreign_text import header_secrets
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes  # decompressed
    retry_after: str = ""  # the header
    date: str = ""  # the header
    secrets: tuple[str, ...] = field(default=(), repr=False)  # of the call, because the answer may repeat them


class Connection(Protocol):  # safe in several threads
    @property
    def server(self) -> str: ...  # for messages

    def send(self, call: Call, within: AnswerTime) -> Answer:
        """Try once. Raise ClusterUnavailable without a whole answer in time, ClusterTooLarge for one too large."""

    def renew(self, within: AnswerTime) -> None:
        """Load the credentials again, after a 401. Raise ConfigurationError, or ClusterUnavailable if it is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    kubeconfig: str = ""  # one path or several; empty: in-cluster, else KUBECONFIG, else ~/.kube/config
    context: str = ""  # of the kubeconfig; empty: its current one. A context rules out the in-cluster configuration
    connect_seconds: float = 5.0
    read_seconds: float = 30.0  # the longest silence; `Tries.answer_seconds` is for a whole answer
    threads: int = 8
    start_seconds: float = 180.0  # for the kubeconfig's program for credentials, which may ask a person
    hang_seconds: float = 180.0  # after which a hanging program is started again; doubled each time


_log = logging.getLogger(__name__)
_FRESH_SECONDS = 1.0  # how long credentials are used unchecked, because a check takes a thread


class _Loaded(NamedTuple):
    configuration: Any
    pool: Any
    credentials: Mapping[str, str]  # as headers


class _Reading(NamedTuple):
    anew: bool  # whether the configuration is loaded, too
    call: Future[_Loaded]
    begun: float


class ClientConnection:
    def __init__(self, settings: ConnectionSettings, environ: Mapping[str, str] = os.environ) -> None:
        """Load the configuration, and send nothing. Raise ConfigurationError."""
        self._settings = settings
        self._paths = settings.kubeconfig or environ.get("KUBECONFIG") or DEFAULT_PATH
        asked = settings.kubeconfig or settings.context
        self._in_cluster = not asked and bool(environ.get("KUBERNETES_SERVICE_HOST"))
        self._lock = threading.Lock()
        self._reading: _Reading | None = None  # the current one, or the last
        self._patience = settings.hang_seconds
        self._refreshed = -inf  # when the credentials were last read, in monotonic seconds
        self._warned_unverified = False
        self._by_program = False  # whether the kubeconfig names a program that gives the credentials
        first = in_side_thread(self._load)
        if not futures.wait([first], settings.start_seconds).done:
            waited = f"did not come in {settings.start_seconds:g} s: {self._hanging}"
            raise ConfigurationError(f"the credentials of the kubeconfig {waited}")
        self._loaded = first.result()

    @property
    def server(self) -> str:
        return str(self._loaded.configuration.host)

    def renew(self, within: AnswerTime) -> None:
        self._read(within, anew=True)

    def send(self, call: Call, within: AnswerTime) -> Answer:
        import urllib3

        fresh = not self._by_program and time.monotonic() - self._refreshed < _FRESH_SECONDS
        loaded = self._loaded if fresh else self._read(within, anew=False)
        host = loaded.configuration.host
        headers = {"Accept": call.accept, "Accept-Encoding": "gzip", "User-Agent": f"eurekube-sync/{__version__}"}
        headers |= {} if call.body is None else {"Content-Type": call.content_type}
        url = f"{host}{call.path}?{urlencode(call.query)}".rstrip("?")
        connect, read = within.bounded(self._settings.connect_seconds), within.bounded(self._settings.read_seconds)
        settings = {"timeout": urllib3.Timeout(connect=connect, read=read), "preload_content": False}
        settings |= {"headers": {**headers, **loaded.credentials}, "retries": False, "redirect": False}
        try:
            with within.running(), closing(loaded.pool.request(call.method, url, body=call.body, **settings)) as answer:
                chunks = answer.stream(CHUNK, decode_content=True)
                body = read_whole(chunks, lambda why: ClusterTooLarge(f"{call} to the Kubernetes API at {host} {why}"))
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:  # ValueError: of a chunk of -5 bytes
            why = no_answer(error).why
            raise ClusterUnavailable(f"no answer from the Kubernetes API at {host} to {call}: {why}") from error
        return Answer(
            status=int(answer.status),
            body=body,
            retry_after=answer.headers.get("Retry-After") or "",
            date=answer.headers.get("Date") or "",
            secrets=tuple(secret for value in loaded.credentials.values() for secret in header_secrets(value)),
        )

    def _read(self, within: AnswerTime, *, anew: bool) -> _Loaded:
        """Return the current credentials. One thread at a time reads them, as the client's hook requires. If a program
        hangs, all is loaded again after a while, so that nothing is shared with that program."""
        while True:
            reading = self._under_way(anew)
            try:
                within.wait_for(reading.call, self._settings.read_seconds)
            except TimeoutError:
                if not self._by_program and within.over and not within.within_limit:
                    raise ClusterUnavailable("no time was left for it") from None  # a token is read at once
                why = f"no credentials for the Kubernetes API: {self._hanging}"
                raise ClusterCredentialsLate(why) from None
            if reading.anew == anew:
                return reading.call.result()

    @property
    def _hanging(self) -> str:
        if self._by_program:
            return "the kubeconfig's program for them (exec) has not ended"
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
        loaded = loaded._replace(credentials=_credentials(loaded.configuration))
        with self._lock:
            if self._reading and self._reading.begun == begun:
                self._loaded, self._patience = loaded, self._settings.hang_seconds
                self._refreshed = time.monotonic()
        return loaded

    def _load(self) -> _Loaded:
        _import_no_more_than_is_used()
        from kubernetes.client.configuration import Configuration
        from kubernetes.client.rest import RESTClientObject

        configuration: Any = Configuration()
        what = f"the kubeconfig {self._paths}"
        try:
            if self._in_cluster:
                what = "this runs in a cluster, but its service account"
                from kubernetes.config.incluster_config import load_incluster_config

                load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            else:
                self._by_program = names_program(self._paths, self._settings.context)
                from kubernetes.config.kube_config import load_kube_config

                which: dict[str, Any] = {"config_file": self._paths, "context": self._settings.context or None}
                load_kube_config(client_configuration=configuration, persist_config=False, **which)  # type: ignore[no-untyped-call]
                if not configuration.host.startswith(("http://", "https://")):
                    server = f"the server {configuration.host}, which lacks https:// before it"
                    raise ConfigurationError(f"{what} names {server}")
            configuration.retries = False
            configuration.connection_pool_maxsize = self._settings.threads
            rest: Any = RESTClientObject(configuration)
        except ConfigurationError:
            raise
        except Exception as error:
            verb = "read" if isinstance(error, OSError) else "used"
            raise ConfigurationError(f"{what} cannot be {verb}: {first_line(error)}") from error
        bound_answers(rest.pool_manager)
        self._warn_unverified(configuration)
        return _Loaded(configuration, rest.pool_manager, {})

    def _warn_unverified(self, configuration: Any) -> None:
        """Warn once; urllib3 would warn at every call."""
        import urllib3

        if configuration.verify_ssl or not configuration.host.startswith("https://"):
            return
        warnings.filterwarnings("ignore", category=urllib3.exceptions.InsecureRequestWarning)
        if not self._warned_unverified:
            self._warned_unverified = True
            _log.warning(
                "the Kubernetes API's certificate is not verified (insecure-skip-tls-verify): anybody in between can "
                "read the credentials and change what is read; give certificate-authority in the kubeconfig instead"
            )


def _import_no_more_than_is_used() -> None:
    """Import the client's packages without their imports, such as pydantic, OAuth and web sockets: a pod uses none of
    them, and in a CronJob they would delay each pass."""
    for name in ("kubernetes", "kubernetes.config"):
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = module_from_spec(spec)


def _credentials(configuration: Any) -> Mapping[str, str]:
    """Return the credentials as headers, without a line end after a token, as kubectl does."""
    try:
        settings = configuration.auth_settings()
    except Exception as error:
        why = first_line(error)
        raise ClusterUnavailable(f"the credentials for the Kubernetes API cannot be read: {why}") from error
    found = {each["key"]: each["value"].strip() for each in settings.values() if each["in"] == "header"}
    if not all(value.isascii() and value.isprintable() for value in found.values()):  # the pool's error would show it
        raise ClusterUnavailable("the credentials for the Kubernetes API hold a character that no header may have")
    return found
