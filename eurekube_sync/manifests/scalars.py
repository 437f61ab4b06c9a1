"""What an unquoted YAML scalar means to kubectl.

kubectl reads YAML with sigs.k8s.io/yaml, which is neither YAML 1.1 nor 1.2: `on`, `y` and `NO` are booleans, `017` and
`0o17` are 15, `08` is 8, dates and `12:30:45` stay strings. PyYAML's own resolver differs in most of these.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

Plain: TypeAlias = str | int | float | bool | None

_WORDS: dict[str, Plain] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {word: True for lower in ("y", "yes", "true", "on") for word in (lower, lower.capitalize(), lower.upper())}
_WORDS |= {word: False for lower in ("n", "no", "false", "off") for word in (lower, lower.capitalize(), lower.upper())}

_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INNER_UNDERSCORE = re.compile(r"(?<=[0-9])_(?=[0-9])")
_MAX_DIGITS = 400  # more is no float either: 1e308 is the largest


def resolve(text: str) -> Plain:
    """The value of an unquoted scalar; infinities and NaN stay words, for JSON has none."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in ".+-0123456789":
        return text
    if text[0] == ".":
        return _float(_INNER_UNDERSCORE.sub("", text), text)
    digits = text.replace("_", "")
    integer = _integer(digits)
    return _float(digits, text) if integer is None else integer


def _integer(digits: str) -> int | None:
    """What fits into an int64, or without a sign into a uint64."""
    if len(digits) > _MAX_DIGITS or not (match := _INTEGER.fullmatch(digits)):
        return None
    sign, body = match.groups()
    base = {"x": 16, "b": 2, "o": 8}.get(body[1:2].lower(), 8 if body[0] == "0" else 10)
    value = int(body.lower().removeprefix("0x").removeprefix("0b").removeprefix("0o"), base)
    value = -value if sign == "-" else value
    return value if -(2**63) <= value < (2**63 if sign else 2**64) else None


def _float(digits: str, text: str) -> Plain:
    if len(digits) > _MAX_DIGITS or not _FLOAT.fullmatch(digits):
        return text
    value = float(digits)
    if math.isinf(value):
        return text
    return int(value) if value.is_integer() and abs(value) < 1e21 else value  # as JSON has it
