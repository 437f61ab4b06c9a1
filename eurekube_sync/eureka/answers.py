"""What an HTTP answer, or the lack of one, means: our own errors, one clear sentence each.

Knows status codes and bodies, not calls; a message holds the printable URL only, never a credential or a whole body.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from dataclasses import dataclass

import msgspec
import requests

from eurekube_sync.errors import (
    RegistryDenied,
    RegistryError,
    RegistryRejected,
    RegistryStumbled,
    RegistryUnavailable,
    RegistryUnusable,
)

TRANSIENT = frozenset({429, 502, 503, 504})
CSRF_FIX = 'http.csrf(csrf -> csrf.ignoringRequestMatchers("/eureka/**"))'
_WANTS_TLS = (b"requires TLS", b"to HTTPS port", b"to an HTTPS server", b"speaking plain HTTP to an SSL")
"""What Tomcat, nginx, Go and Apache say to plain HTTP at a port for TLS."""
_TLS_ALERT = "\\x15\\x03"
"""How a TLS record of type alert begins (RFC 8446, 5.1), quoted: it stands where a status line should be."""
_TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: (\d+)")
_UNKNOWN_AUTHORITY = "is of an authority that is not trusted: give that authority's certificate as CA file"
_OTHER_HOST = "is for another host name: use a name in the URL that the certificate holds"
_UNTRUSTED = {
    2: _UNKNOWN_AUTHORITY,
    9: "is not valid yet: check the clock of this machine, or wait",
    10: "has expired: renew it at the server, or check the clock of this machine",
    18: _UNKNOWN_AUTHORITY,
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    62: _OTHER_HOST,
    64: _OTHER_HOST,
}
"""By `X509_V_ERR_`, see `openssl verify`."""
_CERTIFICATE_REFUSED = ("HANDSHAKE_FAILURE", "CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
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
        return RegistryDenied(f"{call} was answered 403: this login may not use Eureka.")
    if status == 400 and any(words in answer.body for words in _WANTS_TLS):
        return RegistryUnusable(f"{call} was answered 400: this port speaks TLS; begin the URL with https://.")
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
        kind = RegistryStumbled if status == 500 else RegistryRejected
        return kind(f"{call} was answered {status}: Eureka refuses the instance ({_excerpt(answer.body)}).")
    if status >= 500:
        return RegistryUnavailable(f"{call} was answered {status}: see the log of the Eureka server.")
    return RegistryUnusable(f"{call} was answered {status}, which Eureka does not do here: is the URL that of Eureka?")


def write_protection(answer: Answer) -> RegistryDenied:
    """The error for a write that is refused although reads work.

    Spring Security's `CsrfFilter` answers 403, which its error page turns into 401 where it asks for a login as well.
    """
    return RegistryDenied(
        f"{answer.call} was answered {answer.status} although reads work: the server's CSRF protection refuses writes. "
        f"Let the Eureka server ignore it: {CSRF_FIX} in its Spring Security. If it does, this login may only read."
    )


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


def failure(error: OSError, call: str) -> tuple[RegistryError, bool]:
    """The error for a call without an answer, and whether another try may help."""
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(error, requests.exceptions.ProxyError):
            return _tls_failure(cause, call), False
        if isinstance(cause, http.client.BadStatusLine) and _TLS_ALERT in str(cause):
            return RegistryUnusable(f"{call} failed: this port speaks TLS; begin the URL with https://."), False
    match error:
        case requests.exceptions.SSLError():
            return RegistryUnavailable(f"{call} failed: TLS could not be agreed on."), False
        case requests.exceptions.ProxyError():
            return _proxy_failure(causes, call)
        case requests.exceptions.ConnectTimeout():
            return RegistryUnavailable(f"{call} failed: no connection in time; check the address and firewalls."), True
        case requests.exceptions.Timeout():
            return RegistryUnavailable(f"{call} failed: no answer in time."), True
        case requests.exceptions.ChunkedEncodingError() | requests.exceptions.ContentDecodingError():
            return RegistryUnavailable(f"{call} failed: the answer broke off."), True
        case requests.exceptions.ConnectionError():
            reason = _system_reason(causes)
            return RegistryUnavailable(f"{call} failed: {reason}; check that Eureka runs at this address."), True
        case requests.RequestException():
            reason = f"{type(error).__name__}; check the URL and the proxy settings"
            return RegistryUnusable(f"{call} failed: {reason}."), False
    return RegistryUnavailable(f"{call} failed: the CA file, client certificate or key cannot be read any more."), False


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


class _SpringError(msgspec.Struct):
    """What Spring Boot answers in place of Eureka's text; its `timestamp` would make every sentence another."""

    error: str
    message: str = ""


def _excerpt(body: bytes) -> str:
    try:
        told = msgspec.json.decode(body, type=_SpringError)
        body = (told.message or told.error).encode(errors="replace")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # Eureka's own, which is text
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


def _system_reason(causes: list[BaseException]) -> str:
    if any(isinstance(cause, socket.gaierror) or type(cause).__name__ == "NameResolutionError" for cause in causes):
        return "the host name is not known"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "the connection was refused"
    if any(isinstance(cause, (ConnectionResetError, BrokenPipeError)) for cause in causes):
        return "the connection was reset"
    return "the connection broke"


def _proxy_failure(causes: list[BaseException], call: str) -> tuple[RegistryError, bool]:
    """What a proxy says of a tunnel is `OSError("Tunnel connection failed: 407 ...")` of `http.client`."""
    told = next((found for cause in causes if (found := _TUNNEL_REFUSED.search(str(cause)))), None)
    if told is None:
        return RegistryUnavailable(f"{call} failed: the proxy could not be reached."), True
    if told[1] == "407":
        return RegistryDenied(f"{call} failed: the proxy asks for a login; put it into the proxy's URL."), False
    return RegistryUnavailable(f"{call} failed: the proxy refuses to pass it on ({told[1]})."), True


def _tls_failure(error: ssl.SSLError, call: str) -> RegistryError:
    """One sentence for each way in which TLS fails; the reasons are those of OpenSSL."""
    reason = (error.reason or "").upper()
    if isinstance(error, ssl.SSLCertVerificationError):
        trouble = _UNTRUSTED.get(error.verify_code, f"is not trusted ({error.verify_message}): give its authority")
        return RegistryUnavailable(f"{call} failed: the server's certificate {trouble}.")
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"):
        return RegistryUnusable(
            f"{call} failed: no TLS is spoken at this port; begin the URL with http://, or correct it."
        )
    if "CERTIFICATE_REQUIRED" in reason or ("ALERT" in reason and any(part in reason for part in _CERTIFICATE_REFUSED)):
        return RegistryDenied(
            f"{call} failed: the server refuses us in TLS ({reason.lower().replace('_', ' ')}): it may ask for a "
            "client certificate, of an authority that it trusts."
        )
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return RegistryUnavailable(
            f"{call} failed: the connection ended within TLS; does the server speak TLS, and does it want a client "
            "certificate?"
        )
    told = f" ({reason.lower().replace('_', ' ')})" if reason else ""
    return RegistryUnavailable(
        f"{call} failed: TLS could not be agreed on{told}; compare the protocol versions, certificates and the CA file."
    )
