"""How the Kubernetes API is reached: by the official client, which is imported only then: its kubeconfig, exec plugins,
tokens, TLS and proxies, and its connection pool, but not its call methods, which differ in 35, 36 and 37."""

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
    retry_after: str = ""  # as the header has it; so is the next
    date: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)  # of the call, should the answer repeat them


class Connection(Protocol):  # may be used from several threads
    @property
    def server(self) -> str: ...  # as a message names it

    def send(self, call: Call, within: AnswerTime) -> Answer:
        """One try. Raises ClusterUnavailable when no whole answer came in time, ClusterRejected for one too large."""

    def renew(self, within: AnswerTime) -> None:
        """Read the credentials anew, after a 401. Raises ConfigurationError; ClusterUnavailable when late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    kubeconfig: str = ""  # paths, joined by the separator; empty: in-cluster, else KUBECONFIG, else ~/.kube/config
    context: str = ""  # of the kubeconfig; empty for its current one; given, it rules out the in-cluster configuration
    connect_seconds: float = 5.0
    read_seconds: float = 30.0  # the longest silence; `answer_seconds` of the `KubernetesCluster` bounds a whole answer
    threads: int = 8
    start_seconds: float = 180.0  # for the program that a kubeconfig names for the credentials: it may ask a person
    hang_seconds: float = 180.0  # after which it is begun anew, beside the one that hangs; twice as long for each


_log = logging.getLogger(__name__)
_FRESH_SECONDS = 1.0  # how long credentials are sent without a look, which takes a thread; the client's is a minute


class _Loaded(NamedTuple):
    configuration: Any
    pool: Any
    credentials: Mapping[str, str]  # as headers


class _Reading(NamedTuple):
    anew: bool  # the configuration, too
    call: Future[_Loaded]
    begun: float


class ClientConnection:
    def __init__(self, settings: ConnectionSettings, environ: Mapping[str, str] = os.environ) -> None:
        """Reads the configuration; nothing is sent yet. Raises ConfigurationError with one sentence."""
        self._settings = settings
        self._paths = settings.kubeconfig or environ.get("KUBECONFIG") or DEFAULT_PATH
        asked = settings.kubeconfig or settings.context
        self._in_cluster = not asked and bool(environ.get("KUBERNETES_SERVICE_HOST"))
        self._lock = threading.Lock()
        self._reading: _Reading | None = None  # who reads the credentials just now, or did last
        self._patience = settings.hang_seconds
        self._refreshed = -inf  # when the credentials were read last, in monotonic seconds
        self._told_unverified = False
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
        bounds = [within.bounded(each) for each in (self._settings.connect_seconds, self._settings.read_seconds)]
        settings = {"timeout": urllib3.Timeout(connect=bounds[0], read=bounds[1]), "preload_content": False}
        settings |= {"headers": {**headers, **loaded.credentials}, "retries": False, "redirect": False}
        try:
            with within.running(), closing(loaded.pool.request(call.method, url, body=call.body, **settings)) as answer:
                where = f"{call} to the Kubernetes API at {host}"
                chunks = answer.stream(CHUNK, decode_content=True)
                body = read_whole(chunks, lambda why: ClusterTooLarge(f"{where} {why}"))
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:  # a chunk may say -5
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
        """The credentials of now, by one thread at a time, as the client's hook wants it. A program that hangs is left
        to itself; after a while all is loaded anew, so that nothing is shared with it."""
        while True:
            reading = self._under_way(anew)
            try:
                within.wait_for(reading.call, self._settings.read_seconds)
            except TimeoutError:
                if not self._by_program and within.over and not within.within_limit:
                    raise ClusterUnavailable("no time was left for it") from None  # a token is there at once
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
        """The reading to wait for: the one that goes on, or one that is begun here."""
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
        """The client reads a token's file again when it is old. They count unless this reading was left behind."""
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
        self._tell_unverified(configuration)
        return _Loaded(configuration, rest.pool_manager, {})

    def _tell_unverified(self, configuration: Any) -> None:
        """Once, in our words: urllib3 would say it at every call."""
        import urllib3

        if configuration.verify_ssl or not configuration.host.startswith("https://"):
            return
        warnings.filterwarnings("ignore", category=urllib3.exceptions.InsecureRequestWarning)
        if not self._told_unverified:
            self._told_unverified = True
            _log.warning(
                "the Kubernetes API's certificate is not verified (insecure-skip-tls-verify): anybody in between can "
                "read the credentials and change what is read; give certificate-authority in the kubeconfig instead"
            )


def _import_no_more_than_is_used() -> None:
    """Takes the client's packages without what they import, such as pydantic, OAuth and web sockets: a pod uses nothing
    of that, and each pass of a CronJob would begin with it."""
    for name in ("kubernetes", "kubernetes.config"):
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = module_from_spec(spec)


def _credentials(configuration: Any) -> Mapping[str, str]:
    """As headers; a line's end after a token goes, as for kubectl. The pool's error would show what cannot be sent."""
    try:
        settings = configuration.auth_settings()
    except Exception as error:
        why = first_line(error)
        raise ClusterUnavailable(f"the credentials for the Kubernetes API cannot be read: {why}") from error
    found = {each["key"]: each["value"].strip() for each in settings.values() if each["in"] == "header"}
    if not all(value.isascii() and value.isprintable() for value in found.values()):
        raise ClusterUnavailable("the credentials for the Kubernetes API hold a character that no header may have")
    return found
