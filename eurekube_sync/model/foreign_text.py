"""What somebody else wrote, made fit to be shown: without control characters, and without credentials. A server's words
reach terminals, logs, conditions and events. A terminal obeys escape sequences, a bidirectional override turns a
sentence around, and a server or a proxy may repeat the login that it was sent."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection
from urllib.parse import quote

_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
"""Unicode's categories Cc, control characters; Cf, what has no width or turns the direction of a text; Zl and Zp, what
ends a line; Cs, halves of characters, which no stream takes."""
_SECRET_KEY = re.compile(
    r"pass.?(word|wd|phrase|code|key)|(?<!com)(?<!by)(?<!sur)(?<!tres)(?<!over)(?<!under)pass[0-9]*$|pwd"
    r"|secret|token|credential|creds|authorization|bearer|cookie|signature|jwt|(?<!ob)(?<!pos)session(.?(id|key))?$"
    r"|connection.?string|(access|account|api|encryption|master|private|shared|signing).?key"
    r"|(?<![a-z])(auth|dsn|sig)(?![a-z])"
)
"""Of a name in lower case; the words of the last line only as a whole."""
_NEXT_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # as in `dbPass` and `DBAuth`
HIDDEN = "***"
_HEADER = re.compile(
    r"(authorization[\"']?\s*[:=]\s*[\"']?)(?:(basic|bearer|digest|negotiate)\s+)?[^\s\"',;]+", re.IGNORECASE
)
_SCHEME = re.compile(r"\b(basic|bearer)\s+[A-Za-z0-9+/._~=-]{16,}", re.IGNORECASE)
"""Also without the header's name. Shorter words are prose, such as "Basic authentication"."""
_LOGIN_IN_URL = re.compile(r"(\w://)[^/\s\"']+@")  # to the last `@`: a password may have one
LOOKED_AT = 4096  # characters of a text: what a person is shown is less
_AT_THE_CUT = 512  # characters that are not shown where a text is cut: half a login would not be known
_WHOLE_WORD = 8
"""A shorter secret is hidden where it is registered alone: the letters of `eureka` may be part of any word."""
_SHORTEST = 3


def printable(text: str) -> str:
    """The text with each character that a terminal would obey, or that nobody would see, written out, as `\\x1b`."""
    return _UNSAFE.sub(_written_out, text)


def json_printable(text: str) -> str:
    """The same for a JSON document, which means the same after it; its own line ends and indentation stay."""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in "\n\t" else _escaped(found[0]), text)


def excerpt(text: str, *, most: int, secrets: Collection[str] = ()) -> str:
    """The beginning of what a server said, on one line: no control characters, none of these secrets, and nothing that
    looks like a login."""
    shown = _without(text[:LOOKED_AT], secrets)
    if len(text) > LOOKED_AT:
        shown = shown[: -max((_AT_THE_CUT, *map(len, _all_forms(secrets))))]
    shown = printable(" ".join(shown.split()))
    return f"{shown[:most]}..." if len(shown) > most else shown


def sounds_secret(key: str) -> bool:
    """Whether what has this name is a password or the like: `user.password`, `apiKey`."""
    return any(_SECRET_KEY.search(one.lower()) for one in (key, _NEXT_WORD.sub("-", key)))


def login_secrets(user: str, password: str) -> tuple[str, ...]:
    """What of a login must not be shown: the password, and both as basic authentication sends them."""
    return (base64.b64encode(f"{user}:{password}".encode()).decode(), password) if password else ()


def header_secrets(value: str) -> tuple[str, ...]:
    """What of an Authorization header must not be shown."""
    scheme, _, token = value.strip().rpartition(" ")
    if scheme.lower() != "basic":
        return (token,)
    try:
        user, _, password = base64.b64decode(token).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return (token,)
    return (token, *login_secrets(user, password))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(character: str) -> str:
    """As JSON has it: in units of UTF-16."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return re.sub("....", r"\\u\g<0>", units)


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(_all_forms(secrets), key=len, reverse=True):
        found = re.escape(secret) if len(secret) >= _WHOLE_WORD else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(found, HIDDEN, text) if len(secret) >= _SHORTEST else text
    text = _HEADER.sub(lambda found: f"{found[1]}{f'{found[2]} ' if found[2] else ''}{HIDDEN}", text)
    return _LOGIN_IN_URL.sub(rf"\1{HIDDEN}@", _SCHEME.sub(rf"\1 {HIDDEN}", text))


def _all_forms(secrets: Collection[str]) -> Collection[str]:
    """As each is, and as a URL and JSON hold it."""
    in_json = [json.dumps(one, ensure_ascii=ascii_alone)[1:-1] for one in secrets for ascii_alone in (True, False)]
    return {*secrets, *(quote(one, safe="") for one in secrets), *in_json}
