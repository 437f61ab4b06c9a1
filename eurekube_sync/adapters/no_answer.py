"""Why a call got no answer, in the same words for both servers.

Knows what sockets, `ssl`, `http.client` and urllib3 raise. Knows no host, path or status, and not what a caller makes
of it.
"""

from __future__ import annotations

import errno
import http.client
import re
import socket
import ssl
from enum import Enum, auto

from eurekube_sync.model.values import dataclass

_TLS_ALERT = "\\x15\\x03"
"""How a TLS record of type alert begins (RFC 8446, 5.1), quoted: it comes in place of a status line."""
_TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: (\d+)")
_UNKNOWN_AUTHORITY = "comes from an authority that is not trusted: give that authority's certificate as CA file"
_OTHER_HOST = "is for another host name: put a name from the certificate into the URL"
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
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH})


class Fault(Enum):
    """Who has to see to it."""

    AWAY = auto()
    """Perhaps nobody: it may pass by itself."""
    ADDRESS = auto()
    """Who gave the address."""
    LOGIN = auto()
    """Who gave the login or the certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """Why there was none; `why` is a clause without a full stop."""

    why: str
    look: str = ""
    """What to look at, another clause."""
    fault: Fault = Fault.AWAY
    again: bool = False
    """Whether another try may help."""


TLS_IS_SPOKEN = NoAnswer(why="this port speaks TLS; begin the URL with https://", fault=Fault.ADDRESS)


def no_answer(error: BaseException, server: str = "the server") -> NoAnswer:
    """What urllib3, or `requests` around it, raised: in words that stay the same from call to call, without seconds and
    bytes."""
    from urllib3 import exceptions

    found = _causes(error)

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in found)

    if among(exceptions.ProxyError):
        return _of_proxy(found)
    if (said := _of_tls(found)) is not None:
        return said
    if among(exceptions.SSLError):
        return NoAnswer(why="TLS could not be agreed on")
    refused = among(exceptions.NewConnectionError)  # which is a ConnectTimeoutError, too
    if among(exceptions.ConnectTimeoutError) and not refused:
        return NoAnswer(why="no connection in time", look="check the address and firewalls", again=True)
    if among(exceptions.ReadTimeoutError, TimeoutError) and not refused:
        return NoAnswer(why="no answer in time", again=True)
    cut = among(exceptions.ProtocolError) and among(http.client.HTTPException, ValueError)
    if among(exceptions.DecodeError) or (cut and not among(http.client.BadStatusLine)):
        return NoAnswer(why="the answer broke off", again=True)
    return NoAnswer(why=_of_connection(found), look=f"check that {server} runs at this address", again=True)


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


def _of_tls(found: list[BaseException]) -> NoAnswer | None:
    """What these causes say about TLS; None when they say nothing."""
    for cause in found:
        if isinstance(cause, ssl.SSLError):
            return _tls_failure(cause)
        if isinstance(cause, http.client.BadStatusLine) and _TLS_ALERT in str(cause):
            return TLS_IS_SPOKEN
    return None


def _of_proxy(found: list[BaseException]) -> NoAnswer:
    """What a proxy says of a tunnel is `OSError("Tunnel connection failed: 407 ...")` of `http.client`."""
    said = next((match for cause in found if (match := _TUNNEL_REFUSED.search(str(cause)))), None)
    if said is None:
        return NoAnswer(why="the proxy could not be reached", again=True)
    if said[1] == "407":
        return NoAnswer(why="the proxy asks for a login; put it into the proxy's URL", fault=Fault.LOGIN)
    return NoAnswer(why=f"the proxy refuses the call ({said[1]})", again=True)


def _of_connection(found: list[BaseException]) -> str:
    if any(isinstance(cause, socket.gaierror) or type(cause).__name__ == "NameResolutionError" for cause in found):
        return "the host name is not known"
    if any(isinstance(cause, ConnectionRefusedError) for cause in found):
        return "the connection was refused"
    if any(isinstance(cause, (ConnectionResetError, BrokenPipeError)) for cause in found):
        return "the connection was reset"
    if any(isinstance(cause, OSError) and cause.errno in _NO_ROUTE for cause in found):
        return "the network has no route to that address"
    if any(isinstance(cause, http.client.BadStatusLine) for cause in found):
        return "this port does not speak HTTP"
    return "the connection broke"


def _tls_failure(error: ssl.SSLError) -> NoAnswer:
    """One clause for each way in which TLS fails; the reasons are those of OpenSSL."""
    reason = (error.reason or "").upper()
    said = reason.lower().replace("_", " ")
    if isinstance(error, ssl.SSLCertVerificationError):
        trouble = _UNTRUSTED.get(error.verify_code, f"is not trusted ({error.verify_message}): give its authority")
        return NoAnswer(why=f"the server's certificate {trouble}")
    if reason in _PLAIN:
        why = "this port does not speak TLS; begin the URL with http://, or correct it"
        return NoAnswer(why=why, fault=Fault.ADDRESS)
    if "CERTIFICATE_REQUIRED" in reason or ("ALERT" in reason and any(part in reason for part in _CERTIFICATE_REFUSED)):
        why = f"the server refuses us in TLS ({said}): it may ask for a client certificate, of an authority that it"
        return NoAnswer(why=f"{why} trusts", fault=Fault.LOGIN)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        why = "the connection ended within TLS; check that the server speaks TLS, and whether it wants a client"
        return NoAnswer(why=f"{why} certificate")
    which = f" ({said})" if said else ""
    why = f"TLS could not be agreed on{which}; compare the protocol versions, certificates and the CA file"
    return NoAnswer(why=why)
