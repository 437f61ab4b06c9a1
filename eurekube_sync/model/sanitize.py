"""Removes control characters and credentials from texts of servers, before they reach terminals,
logs, conditions and events. Escape sequences control a terminal, and a server or a proxy may repeat
the login that it was sent."""

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
"""Unicode's categories Cc (control characters), Cf (invisible, or changes the direction of a text),
Zl and Zp (ends a line), and Cs (surrogates, which cannot be encoded)."""
_SECRET_KEY = re.compile(
    r"pass.?(word|wd|phrase|code|key)|(?<!com)(?<!by)(?<!sur)(?<!tres)(?<!over)(?<!under)pass[0-9]*$|pwd"
    r"|secret|token|credential|creds|authorization|bearer|cookie|signature|jwt|(?<!ob)(?<!pos)session(.?(id|key))?$"
    r"|connection.?string|(access|account|api|encryption|master|private|shared|signing).?key"
    r"|(?<![a-z])(auth|dsn|sig)(?![a-z])"
)
"""Matches a name in lower case. The words of the last line match only as whole words."""
_NEXT_WORD = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
)  # as in `dbPass` and `DBAuth`
HIDDEN = "***"
_WEB_TOKEN = re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}")  # a JSON Web Token (RFC 7519)
_HEADER = re.compile(
    r"(authorization[\"']?\s*[:=]\s*[\"']?)(?:(basic|bearer|digest|negotiate)\s+)?[^\s\"',;]+",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(basic|bearer)\s+[A-Za-z0-9+/._~=-]{16,}", re.IGNORECASE)
"""A login without the header's name. Shorter words are prose, such as "Basic authentication"."""
_LOGIN_IN_URL = re.compile(
    r"(\w://)[^/\s\"']+@"
)  # to the last `@`, because a password may contain one
LOOKED_AT = 4096  # the characters of a text that are searched for secrets
_AT_THE_CUT = (
    512  # characters before a cut that are dropped, because they may be the start of a secret
)
_WHOLE_WORD = 8  # a secret with fewer characters is hidden only as a whole word
_SHORTEST = 3  # a secret with fewer characters is not hidden


def printable(text: str) -> str:
    """Escape each control character and invisible character, for example as `\\x1b`."""
    return _UNSAFE.sub(_written_out, text)


def json_printable(text: str) -> str:
    """Escape the same characters of a JSON document, without a change of its meaning. Line ends and
    tabs stay."""
    return _UNSAFE.sub(_json_escaped, text)


def excerpt(text: str, *, most: int, secrets: Collection[str] = ()) -> str:
    """Return the start of a server's text as a clause on one line, without control characters,
    secrets, and likely logins."""
    shown = _without(text[:LOOKED_AT], secrets)
    if len(text) > LOOKED_AT:
        shown = shown[: -max((_AT_THE_CUT, *map(len, _all_forms(secrets))))]
    shown = printable(" ".join(shown.split())).rstrip(".")
    if len(shown) > most:
        return f"{shown[:most]}..."
    return shown


def sounds_secret(key: str) -> bool:
    """Whether this is the name of a secret, such as `user.password` or `apiKey`."""
    words = _NEXT_WORD.sub("-", key)
    return any(_SECRET_KEY.search(name.lower()) for name in (key, words))


def login_secrets(user: str, password: str) -> tuple[str, ...]:
    """Return the secrets of a login: the password, and the token of basic authentication."""
    if not password:
        return ()
    return (base64.b64encode(f"{user}:{password}".encode()).decode(), password)


def header_secrets(value: str) -> tuple[str, ...]:
    """Return the secrets of an Authorization header."""
    scheme, _, token = value.strip().rpartition(" ")
    if scheme.lower() != "basic":
        return (token,)
    try:
        user, _, password = base64.b64decode(token).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return (token,)
    return (token, *login_secrets(user, password))


def _written_out(character: re.Match[str]) -> str:
    code = ord(character[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def _json_escaped(character: re.Match[str]) -> str:
    if character[0] in "\n\t":
        return character[0]
    utf16 = character[0].encode("utf-16-be", "surrogatepass").hex()
    return re.sub("....", r"\\u\g<0>", utf16)


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(_all_forms(secrets), key=len, reverse=True):
        if len(secret) < _SHORTEST:
            continue
        pattern = re.escape(secret)
        if len(secret) < _WHOLE_WORD:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        text = re.sub(pattern, HIDDEN, text)
    text = _WEB_TOKEN.sub(HIDDEN, text)
    text = _HEADER.sub(_hidden_login, text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    return _LOGIN_IN_URL.sub(rf"\1{HIDDEN}@", text)


def _hidden_login(header: re.Match[str]) -> str:
    name, scheme = header.groups()
    if scheme:
        return f"{name}{scheme} {HIDDEN}"
    return f"{name}{HIDDEN}"


def _all_forms(secrets: Collection[str]) -> Collection[str]:
    """Return each secret as it is, as in a URL, and as in JSON."""
    forms = set(secrets)
    for secret in secrets:
        forms.add(quote(secret, safe=""))
        for ascii_alone in (True, False):
            forms.add(json.dumps(secret, ensure_ascii=ascii_alone)[1:-1])
    return forms
