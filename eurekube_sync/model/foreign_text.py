"""What somebody else wrote, made fit to be shown: without control characters, and without credentials.

A server's words reach terminals, logs, conditions and events. A terminal obeys escape sequences, a bidirectional
override turns a sentence around, and a server or a proxy may repeat the login that it was sent.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection
from urllib.parse import quote

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters (C0, DEL, C1), separators of lines, what turns the direction of a text, and halves of characters,
which no stream takes."""
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|pass(word|wd)|secret|token|credential|private.?key|api.?key"
    r"|authorization|(?<![a-z])auth(?![a-z])|(?-i:Auth(?![a-z]))",
    re.I,
)
HIDDEN = "***"
_HEADER = re.compile(
    r"(authorization[\"']?\s*[:=]\s*[\"']?)(?:(basic|bearer|digest|negotiate)\s+)?[^\s\"',;]+", re.IGNORECASE
)
_SCHEME = re.compile(r"\b(basic|bearer)\s+[A-Za-z0-9+/._~=-]{16,}", re.IGNORECASE)
"""Also without the header's name. Shorter words are prose, such as "Basic authentication"."""
_LOGIN_IN_URL = re.compile(r"(\w://)[^/\s@\"']+@")
_LOOKED_AT = 4096
"""Characters of a text: what a person is shown is less."""
_WHOLE_WORD = 8
"""A shorter secret is hidden where it is registered alone: the letters of `eureka` may be part of any word."""
_SHORTEST = 3


def printable(text: str) -> str:
    """The text with each character that a terminal would obey written out, as `\\x1b`."""
    return _UNSAFE.sub(_written_out, text)


def json_printable(text: str) -> str:
    """The same for a JSON document, which means the same after it; its own line ends and indentation stay."""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in "\n\t" else f"\\u{ord(found[0]):04x}", text)


def excerpt(text: str, *, most: int, secrets: Collection[str] = ()) -> str:
    """The beginning of what a server said, on one line: no control characters, none of these secrets, and nothing that
    looks like a login."""
    shown = _without(text[:_LOOKED_AT], secrets)
    shown = printable(" ".join(shown.split()))
    return f"{shown[:most]}..." if len(shown) > most else shown


def sounds_secret(key: str) -> bool:
    """Whether what has this name is a password or the like: `user.password`, `apiKey`."""
    return bool(_SECRET_KEY.search(key))


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
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in sorted({form for one in secrets for form in _forms(one)}, key=len, reverse=True):
        found = re.escape(secret) if len(secret) >= _WHOLE_WORD else rf"(?<!\w){re.escape(secret)}(?!\w)"
        text = re.sub(found, HIDDEN, text) if len(secret) >= _SHORTEST else text
    text = _HEADER.sub(lambda found: f"{found[1]}{f'{found[2]} ' if found[2] else ''}{HIDDEN}", text)
    return _LOGIN_IN_URL.sub(rf"\1{HIDDEN}@", _SCHEME.sub(rf"\1 {HIDDEN}", text))


def _forms(secret: str) -> Collection[str]:
    """As it is, as a URL and as JSON hold it."""
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
