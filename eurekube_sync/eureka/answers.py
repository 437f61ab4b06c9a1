"""What an HTTP answer, or the lack of one, means: our own errors, one clear sentence each.

Knows status codes and bodies, not calls; a message holds the printable URL only, never a credential or a whole body.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

import requests

from eurekube_sync.errors import (
    RegistryDenied,
    RegistryError,
    RegistryRejected,
    RegistryUnavailable,
    RegistryUnusable,
)

TRANSIENT = frozenset({429, 502, 503, 504})
_LOGIN_WORDS = ("login", "signin", "sign-in", "oauth", "auth", "sso", "saml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One whole answer. Header values are as sent; `body` is unzipped."""

    method: str
    url: str
    status: int
    content_type: str
    location: str
    retry_after: str
    body: bytes

    @property
    def call(self) -> str:
        """What was asked, for messages."""
        return f"{self.method} {self.url}"

    @property
    def is_page(self) -> bool:
        """Whether it is a web page, whatever its status."""
        return "html" in self.content_type or self.body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))

    @property
    def is_eurekas_404(self) -> bool:
        """Whether a 404 may be Eureka's own: Spring's has a JSON body, Netflix's none; a proxy's is text or a page."""
        return self.status == 404 and (not self.body or self.body.lstrip()[:1] == b"{")


def refusal(answer: Answer, *, with_login: bool) -> RegistryError:
    """The error for an answer that is not what its call hopes for."""
    call, status = answer.call, answer.status
    if 300 <= status < 400:
        return _redirect(answer)
    if status == 401:
        if with_login:
            return RegistryDenied(f"{call} was answered 401: Eureka refuses this user or password.")
        return RegistryDenied(f"{call} was answered 401: Eureka asks for a login; give user and password.")
    if status == 407:
        return RegistryDenied(f"{call} was answered 407: the proxy asks for a login; put it into the proxy's URL.")
    if status == 403:
        if answer.method == "GET":
            return RegistryDenied(f"{call} was answered 403: this login may not read Eureka.")
        return RegistryDenied(
            f"{call} was answered 403: if reads work, the server's CSRF protection refuses writes; let it ignore "
            "/eureka/** (Spring Security's csrf().ignoringRequestMatchers)."
        )
    if status in TRANSIENT:
        return RegistryUnavailable(
            f"{call} was answered {status}: Eureka, or the proxy before it, is overloaded or down."
        )
    if status == 404:
        return RegistryUnusable(f"{answer.url} was not found: does the URL end in /eureka?")
    if answer.is_page:
        return RegistryUnusable(
            f"{call} was answered {status} with a web page: a login or a proxy answers in Eureka's place, or the URL "
            "is not that of Eureka."
        )
    if status == 400 or (status == 500 and answer.method == "POST"):
        return RegistryRejected(f"{call} was answered {status}: Eureka refuses the instance ({_excerpt(answer.body)}).")
    if status >= 500:
        return RegistryUnavailable(f"{call} was answered {status}: see the log of the Eureka server.")
    return RegistryUnusable(f"{call} was answered {status}, which Eureka does not do here: is the URL that of Eureka?")


def warming_up(answer: Answer) -> RegistryUnavailable:
    """The error for a list that is 403 while other reads work (`PeerAwareInstanceRegistryImpl.shouldAllowAccess`)."""
    return RegistryUnavailable(
        f"{answer.call} was answered 403 while other reads work: Eureka has just started without a peer to copy from "
        "and shows its list after 5 minutes."
    )


def unreadable(answer: Answer) -> RegistryUnusable | None:
    """The error for a success whose body is no JSON; None when it may be."""
    call = answer.call
    if answer.is_page:
        return RegistryUnusable(
            f"{call} was answered {answer.status} with a web page instead of JSON: a login or a proxy answers in "
            "Eureka's place, or the URL lacks /eureka."
        )
    if not answer.body.strip():
        return RegistryUnusable(f"{call} was answered {answer.status} with an empty body instead of JSON.")
    if answer.body.lstrip()[:1] != b"{":
        return RegistryUnusable(
            f"{call} was answered {answer.status} with {answer.content_type or 'something'} instead of JSON: another "
            "program answers at this URL, or a proxy drops the Accept header."
        )
    return None


def failure(error: requests.RequestException, call: str) -> tuple[RegistryError, bool]:
    """The error for a call without an answer, and whether another try may help."""
    match error:
        case requests.exceptions.SSLError():
            return RegistryUnavailable(f"{call} failed: {_tls_reason(error)}."), False
        case requests.exceptions.ProxyError():
            return RegistryUnavailable(f"{call} failed: the proxy could not be reached or refused the call."), True
        case requests.exceptions.ConnectTimeout():
            return RegistryUnavailable(f"{call} failed: no connection in time; check the address and firewalls."), True
        case requests.exceptions.Timeout():
            return RegistryUnavailable(f"{call} failed: no answer in time."), True
        case requests.exceptions.ChunkedEncodingError() | requests.exceptions.ContentDecodingError():
            return RegistryUnavailable(f"{call} failed: the answer broke off."), True
        case requests.exceptions.ConnectionError():
            reason = _system_reason(error)
            return RegistryUnavailable(f"{call} failed: {reason}; check that Eureka runs at this address."), True
    return RegistryUnusable(f"{call} failed: {type(error).__name__}; check the URL and the proxy settings."), False


def _redirect(answer: Answer) -> RegistryError:
    target = answer.location.split("?")[0].split("#")[0]
    target = target.rsplit("@", 1)[-1] if "@" in target else target
    if any(word in target.lower() for word in _LOGIN_WORDS):
        return RegistryDenied(
            f"{answer.call} was redirected to a login page ({answer.status} to {target}): Eureka is behind a web "
            "login; let it take basic authentication, or no login, on /eureka/**."
        )
    return RegistryUnusable(
        f"{answer.call} was redirected ({answer.status} to {target or 'nowhere'}): redirects are not followed; "
        "give the final URL."
    )


def _excerpt(body: bytes) -> str:
    text = " ".join(body[:300].decode(errors="replace").split())
    return f"{text[:160]}..." if len(text) > 160 else text or "no reason given"


def _causes(error: BaseException) -> list[BaseException]:
    """The error and all that it wraps: `requests` and urllib3 keep causes in `args` and `reason` as well."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting and len(found) < 20:
        one = waiting.pop(0)
        if one is None or one in found:
            continue
        found.append(one)
        reason = getattr(one, "reason", None)
        waiting += [one.__cause__, one.__context__, reason if isinstance(reason, BaseException) else None]
        waiting += [part for part in one.args if isinstance(part, BaseException)]
    return found


def _system_reason(error: BaseException) -> str:
    causes = _causes(error)
    if any(isinstance(cause, socket.gaierror) or type(cause).__name__ == "NameResolutionError" for cause in causes):
        return "the host name is not known"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "the connection was refused"
    if any(isinstance(cause, (ConnectionResetError, BrokenPipeError)) for cause in causes):
        return "the connection was reset"
    return "the connection broke"


def _tls_reason(error: BaseException) -> str:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the server's certificate is not trusted ({cause.verify_message}); give its authority as CA file"
    return "TLS could not be agreed on; does the server speak https at this port, and does it want a certificate?"
