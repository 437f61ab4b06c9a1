"""Our errors for HTTP answers, and for calls without one. Each is a clause for a person. They show
no credential and no whole body."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import requests
from requests.exceptions import ChunkedEncodingError, ContentDecodingError
from urllib3.exceptions import HTTPError

from eurekube_sync.adapters.eureka.address import BearerToken, Credentials
from eurekube_sync.adapters.no_answer import UNREADABLE, NoAnswer, no_answer
from eurekube_sync.model import errors
from eurekube_sync.model.sanitize import LOOKED_AT, excerpt
from eurekube_sync.model.sources import Cause

TRANSIENT = frozenset({429, 502, 503, 504})
_WANTS_TLS = (
    b"requires TLS",
    b"to HTTPS port",
    b"to an HTTPS server",
    b"speaking plain HTTP to an SSL",
)
"""How Tomcat, nginx, Go and Apache answer plain HTTP at a port for TLS."""
_ERRORS = {
    kind.cause: kind
    for kind in (errors.RegistryUnavailable, errors.RegistryUnusable, errors.RegistryDenied)
}
_OF_THE_NETWORK = (
    requests.ConnectionError,
    requests.Timeout,
    ChunkedEncodingError,
    ContentDecodingError,
)
CHECK_THE_URL = "check that this is the URL of Eureka"
_LONGEST = 160  # characters of a server's message
_CSRF_OFF = (
    'http.csrf(csrf -> csrf.ignoringRequestMatchers("/eureka/**")) from Spring Boot 3 on, '
    'http.csrf().ignoringAntMatchers("/eureka/**") before it'
)
_LOGIN_WORDS = ("login", "signin", "sign-in", "oauth", "auth", "sso", "saml")


class Answer(NamedTuple):
    method: str
    url: str
    status: int
    headers: Mapping[str, str]  # names in any case
    body: bytes  # unzipped

    @property
    def call(self) -> str:
        return f"{self.method} {self.url}"

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "").lower()

    @property
    def is_page(self) -> bool:
        return "html" in self.content_type or self.body[:200].lstrip().lower().startswith(
            (b"<!doctype", b"<html")
        )

    @property
    def may_be_eurekas(self) -> bool:
        """Whether an error may be Eureka's own: Spring's has a JSON body, Netflix's none, a proxy's
        is text or a page."""
        return self.body.lstrip()[:1] in (b"", b"{")

    @property
    def is_eurekas_404(self) -> bool:
        return self.status == 404 and self.may_be_eurekas

    @property
    def proxy(self) -> str:
        """The proxy that answered, as its header `Server` names it. A proxy puts its name on
        Eureka's answers, too."""
        name = excerpt(self.headers.get("Server", ""), most=80)
        if name:
            return f"a proxy ({name})"
        return "a proxy or firewall"


def refusal(answer: Answer, login: Credentials | BearerToken | None) -> errors.RegistryError:
    """Return the error for an answer with an unwanted status; its message does not show our login.
    The first row that fits decides.

    | status           | and the body is  | it means                              |
    |------------------|------------------|---------------------------------------|
    | 3xx              |                  | a login page, or another URL          |
    | 404              |                  | Eureka is not at this path            |
    | 401, 403, 407    |                  | a login or a right is missing         |
    | 400              | a demand for TLS | the URL has to begin with https       |
    | 429, 502 to 504  |                  | overloaded or down                    |
    | any other        | a web page       | something answers in Eureka's place   |
    | 400, 500 of POST |                  | Eureka refuses this instance or batch |
    | 5xx              |                  | Eureka has a fault                    |
    | any other        |                  | this is not Eureka                    |
    """
    status = answer.status
    secrets = login.secrets if login else ()
    answered = f"{answer.call} was answered {status}"
    if 300 <= status < 400:
        return _redirect(answer, secrets)
    if status == 404:
        return _not_found(answer)
    if status in (401, 403, 407):
        return _denied(answer, login)
    if status == 400 and any(words in answer.body for words in _WANTS_TLS):
        return errors.RegistryUnusable(
            f"{answered}: this port speaks TLS; begin the URL with https://"
        )
    if status in TRANSIENT:
        return errors.RegistryUnavailable(
            f"{answered}: Eureka, or a proxy in front of it, is overloaded or down"
        )
    if answer.is_page:
        return errors.RegistryUnusable(
            f"{answered} with a web page: a login or a proxy answers in Eureka's place, or this is "
            "not the URL of Eureka"
        )
    if status == 400 or (status == 500 and answer.method == "POST"):
        kind = errors.RegistryStumbled if status == 500 else errors.RegistryRejected
        what = "batch" if "/peerreplication/" in answer.url else "instance"
        return kind(f"{answered}: Eureka refuses the {what} ({_reason_of(answer.body, secrets)})")
    if status >= 500:
        return errors.RegistryUnavailable(f"{answered}: see the log of the Eureka server")
    return errors.RegistryUnusable(f"{answered}, which Eureka does not do here: {CHECK_THE_URL}")


def _redirect(answer: Answer, secrets: Collection[str]) -> errors.RegistryError:
    target = answer.headers.get("Location", "").split("?")[0].split("#")[0]
    target = excerpt(target.rsplit("@", 1)[-1], most=_LONGEST, secrets=secrets)
    where = f"({answer.status} to {target or 'nowhere'})"
    if any(word in target.lower() for word in _LOGIN_WORDS):
        return errors.RegistryDenied(
            f"{answer.call} was redirected to a login page {where}: Eureka is behind a web login; "
            "let it take basic authentication, or no login, on /eureka/**"
        )
    return errors.RegistryUnusable(
        f"{answer.call} was redirected {where}: redirects are not followed; give the final URL"
    )


def _not_found(answer: Answer) -> errors.RegistryUnusable:
    why = "Eureka is at another path there, or another program answers"
    if "eureka" not in urlsplit(answer.url).path.split("/"):
        why = "check that the URL ends in /eureka"
    return errors.RegistryUnusable(f"{answer.url} was not found: {why}")


def _denied(answer: Answer, login: Credentials | BearerToken | None) -> errors.RegistryDenied:
    """Return the error for a 401, 403 or 407. A 403 that cannot be Eureka's is a proxy's."""
    reads = answer.method == "GET"
    if answer.status == 403 and not answer.may_be_eurekas:
        methods = "GET" if reads else "PUT, POST and DELETE"
        why = f" by {answer.proxy}, not by Eureka: let it pass {methods} to Eureka's paths"
    elif answer.status == 403:
        why = f": this login has no right to {'read' if reads else 'use'} Eureka"
    elif answer.status == 407:
        why = ": a proxy in between asks for a login of its own"
    elif login is not None:
        why = f": Eureka {login.refused}"
    else:
        why = ": Eureka asks for a login; give user and password, or a token"
    return errors.RegistryDenied(f"{answer.call} was answered {answer.status}{why}")


def refused_though_reads_work(answer: Answer) -> errors.RegistryError:
    """Return the error for a 401 or 403 although other reads work.

    A list is a 403 during warm-up (`PeerAwareInstanceRegistryImpl.shouldAllowAccess`). A write is a
    403 by Spring Security's `CsrfFilter`; with a login, the error page makes it a 401."""
    if answer.method == "GET":
        return errors.RegistryUnavailable(
            f"{answer.call} was answered 403 while other reads work: Eureka has just started "
            "without a peer to copy from and shows its list after 5 minutes"
        )
    refused = f"{answer.call} was answered {answer.status} although reads work"
    if "insufficient_scope" in answer.headers.get("WWW-Authenticate", ""):  # RFC 6750, 3.1
        return errors.RegistryDenied(f"{refused}: the token lacks a scope for writes")
    if "/peerreplication/" in answer.url:
        return errors.RegistryDenied(refused)
    otherwise = "this login has no right to write"
    # It may be Eureka's answer, or the proxy's own
    if not answer.body and answer.headers.get("Server"):
        otherwise = f"{otherwise}, or {answer.proxy} lets no writes pass"
    return errors.RegistryDenied(
        f"{refused}: the server's CSRF protection refuses writes. Turn it off for Eureka's paths "
        f"in the server's Spring Security: {_CSRF_OFF}. If it is off already, {otherwise}"
    )


def not_found_though_reads_work(answer: Answer) -> errors.RegistryUnusable:
    """Return the error for the 404 of a registration, which Eureka never answers, although reads
    work."""
    return errors.RegistryUnusable(
        f"{answer.call} was answered 404 although reads work: a proxy or another program answers "
        "writes in Eureka's place"
    )


def hidden_by_proxy(answer: Answer) -> errors.RegistryUnusable:
    """Return the error for a 404 that is not of Eureka's form: nobody knows whether the instance is
    registered."""
    return errors.RegistryUnusable(
        f"{answer.call} was answered 404 by {answer.proxy}, which hides whether Eureka has the "
        "instance: let the proxy pass on Eureka's own answers, as nginx does without "
        "proxy_intercept_errors"
    )


def not_written(answer: Answer) -> errors.RegistryUnusable | None:
    """Return the error for a 200 to a write that is not Eureka's, which has no body
    (`Response.ok().build()`)."""
    if answer.is_page:
        return unreadable(answer)
    if not answer.body.strip():
        return None
    return errors.RegistryUnusable(
        f"{answer.call} was answered {answer.status} with a body, which Eureka's answer to a write "
        "has not: another program answers in its place"
    )


def agrees_to_everything(answer: Answer) -> errors.RegistryUnusable:
    """Return the error for a 200 of a server that also renews an instance that cannot exist."""
    return errors.RegistryUnusable(
        f"{answer.call} was answered {answer.status}, and so is the renewal of an instance that "
        "cannot exist: another program answers in Eureka's place"
    )


def unreadable(answer: Answer) -> errors.RegistryUnusable | None:
    """Return the error for a 200 whose body is no JSON object; None if it may be one."""
    if answer.is_page:
        what = (
            "a web page instead of JSON: a login or a proxy answers in Eureka's place, or this "
            "is not its URL"
        )
    elif not answer.body.strip():
        what = "an empty body instead of JSON"
    elif answer.body.lstrip()[:1] == b"{":
        return None
    elif "json" in answer.content_type:
        what = "JSON that is no object: another program answers at this URL"
    else:
        given = excerpt(answer.content_type, most=80) or "something"
        what = (
            f"{given} instead of JSON: another program answers at this URL, or a proxy drops "
            "the Accept header"
        )
    return errors.RegistryUnusable(f"{answer.call} was answered {answer.status} with {what}")


def failure(
    error: OSError | HTTPError | ValueError, call: str
) -> tuple[errors.RegistryError, bool]:
    """Return the error for a call without a usable answer, and whether another try may help."""
    said = no_answer(error, "Eureka")
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        said = NoAnswer("the CA file, client certificate or key cannot be read any more")
    elif not isinstance(error, _OF_THE_NETWORK):
        what = "an unusable address, or an answer that is no HTTP"  # the same for each library
        said = NoAnswer(what, "check the URL", Cause.UNUSABLE)
    why = f"{said.why}; {said.look}" if said.look else said.why
    return _ERRORS[said.cause](f"{call} failed: {why}"), said.again


class _SpringError(msgspec.Struct):
    # Without its `timestamp`: messages must not differ from pass to pass
    error: str
    message: str = ""


_SPRING_ERROR = msgspec.json.Decoder(_SpringError)


def _reason_of(body: bytes, secrets: Collection[str]) -> str:
    try:
        said = _SPRING_ERROR.decode(body)
        text = said.message or said.error
    except UNREADABLE:  # Eureka's own body is text
        text = body[: 5 * LOOKED_AT].decode(errors="replace")
    return excerpt(text, most=_LONGEST, secrets=secrets) or "no reason given"
