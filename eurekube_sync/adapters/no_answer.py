"""Sentences about calls without an answer, or with an unreadable one, the same for both servers."""

from __future__ import annotations

import errno
import http.client
import re
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.sources import Cause

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)
"""Errors of decoding a server's JSON. Stray bytes, deep nesting, 5,000 digits and odd dates raise
no MsgspecError."""
_PLACE = re.compile(r" \(byte \d+\)")
# The first bytes of a TLS alert (RFC 8446, 5.1), in the repr of a bad status line
_TLS_ALERT = "\\x15\\x03"
_TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: (\d+)")
_UNKNOWN_AUTHORITY = (
    "comes from an authority that is not trusted: give that authority's certificate as CA file"
)
_ANOTHER_NAME = "is for another host name: put a name from the certificate into the URL"
_UNTRUSTED = {  # by the code of `X509_V_ERR_`, see `openssl verify`
    2: _UNKNOWN_AUTHORITY,
    9: "is not valid yet: check the clock of this machine, or wait",
    10: "has expired: renew it at the server, or check the clock of this machine",
    18: _UNKNOWN_AUTHORITY,
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    62: _ANOTHER_NAME,
    64: _ANOTHER_NAME,
}
_CERTIFICATE_REFUSED = ("HANDSHAKE_FAILURE", "CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH})
_OF_CONNECTIONS: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "the host name is not known"),
    (ConnectionRefusedError, "the connection was refused"),
    (ConnectionResetError, "the connection was reset"),
    (BrokenPipeError, "the connection was reset"),
    (http.client.BadStatusLine, "this port does not speak HTTP"),
)


class NoAnswer(NamedTuple):
    why: str  # a clause without a full stop
    look: str = ""  # a clause that says where to look
    cause: Cause = Cause.UNAVAILABLE
    """UNUSABLE: a wrong address; DENIED: a wrong login or certificate."""
    again: bool = False  # whether another try may help


def proxy_named(url: str, origin: str) -> str:
    """Return words for a proxy: its address without a login, and the option or variable that names
    it."""
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # what is wrong in it may be a part of its password
        return f"the proxy of {origin}"
    place = printable(f"[{host}]" if ":" in host else host)
    if port is not None:
        place += f":{port}"
    return f"the proxy {parts.scheme}://{place} of {origin}"


def no_answer(error: BaseException, server: str = "the server", proxy: str = "") -> NoAnswer:
    """Explain an error of urllib3 or `requests`, in words that are the same in each pass: no
    seconds, no bytes. `proxy` is what `proxy_named` returns."""
    from urllib3 import exceptions

    causes = _causes(error)

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if among(exceptions.ProxyError):
        return _of_proxy(causes, proxy or "the proxy")
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            return _of_tls(cause)
        if isinstance(cause, http.client.BadStatusLine) and _TLS_ALERT in str(cause):
            why = "this port speaks TLS; begin the URL with https://"
            return NoAnswer(why, cause=Cause.UNUSABLE)
    if among(exceptions.SSLError):
        return NoAnswer("TLS could not be agreed on")
    # A refused connection is a ConnectTimeoutError, too.
    if not among(exceptions.NewConnectionError):
        if among(exceptions.ConnectTimeoutError):
            return NoAnswer("no connection in time", "check the address and firewalls", again=True)
        if among(exceptions.ReadTimeoutError, TimeoutError):
            return NoAnswer("no answer in time", again=True)
    if _broke_off(among):
        return NoAnswer("the answer broke off", again=True)
    why = _broken(causes) or "the connection broke"
    return NoAnswer(why, f"check that {server} runs at this address", again=True)


def _broke_off(among: Callable[..., bool]) -> bool:
    """Say whether a part of the answer had come."""
    from urllib3 import exceptions

    if among(exceptions.DecodeError):
        return True
    if among(http.client.BadStatusLine):
        return False
    return among(exceptions.ProtocolError) and among(http.client.HTTPException, ValueError)


def reason(error: Exception) -> str:
    """Explain an UNREADABLE error, without the byte position, which changes from pass to pass."""
    if isinstance(error, UnicodeDecodeError):
        return "text that is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text = str(error)
    if "integer string conversion" in text:
        return "a number of too many digits"
    return _PLACE.sub("", text)


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error and all that it wraps; `requests` and urllib3 keep causes in `args` and
    `reason`, too."""
    causes: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting and len(causes) < 20:
        cause = waiting.pop(0)
        if isinstance(cause, BaseException) and cause not in causes:
            causes.append(cause)
            waiting += [cause.__cause__, cause.__context__, getattr(cause, "reason", None)]
            waiting += cause.args
    return causes


def _broken(causes: list[BaseException]) -> str:
    """Return why a connection was not opened or broke; empty if that is not known."""
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno in _NO_ROUTE:
            return "the network has no route to that address"
    for kind, said in _OF_CONNECTIONS:
        if any(isinstance(cause, kind) for cause in causes):
            return said
    return ""


def _of_proxy(causes: list[BaseException], proxy: str) -> NoAnswer:
    """Read the proxy's status from `OSError("Tunnel connection failed: 407 ...")` of
    `http.client`."""
    for cause in causes:
        status = _TUNNEL_REFUSED.search(str(cause))
        if status is None:
            continue
        if status[1] == "407":
            why = f"{proxy} asks for a login; put it into the proxy's URL"
            return NoAnswer(why, cause=Cause.DENIED)
        return NoAnswer(f"{proxy} refuses the call ({status[1]})", again=True)
    why = _broken(causes)
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            why = _of_tls(cause, "the proxy").why
    unreached = f"{proxy} could not be reached"
    if why:
        unreached = f"{unreached}: {why}"
    return NoAnswer(unreached, again=True)


def _of_tls(error: ssl.SSLError, whose: str = "the server") -> NoAnswer:
    name = (error.reason or "").upper()
    said = name.lower().replace("_", " ")
    if isinstance(error, ssl.SSLCertVerificationError):
        # Of a known authority: it was revoked, say, or is for another purpose.
        otherwise = f"is refused ({error.verify_message}): get another one for it"
        trouble = _UNTRUSTED.get(error.verify_code, otherwise)
        return NoAnswer(f"{whose}'s certificate {trouble}")
    if name in _PLAIN:
        why = "this port does not speak TLS; begin the URL with http://, or correct it"
        return NoAnswer(why, cause=Cause.UNUSABLE)
    alert = "ALERT" in name and any(part in name for part in _CERTIFICATE_REFUSED)
    if alert or "CERTIFICATE_REQUIRED" in name:
        asks = "it may ask for a client certificate, of an authority that it trusts"
        return NoAnswer(f"the server refuses us in TLS ({said}): {asks}", cause=Cause.DENIED)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        check = "check that the server speaks TLS, and whether it wants a client certificate"
        return NoAnswer(f"the connection ended within TLS; {check}")
    which = f" ({said})" if said else ""
    return NoAnswer(
        f"TLS could not be agreed on{which}; compare the protocol versions, certificates and the "
        "CA file"
    )
