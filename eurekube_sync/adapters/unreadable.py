"""What reading a server's JSON raises, and the words for it."""

from __future__ import annotations

import re

import msgspec

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)
"""A stray byte, deep nesting, a number of 5,000 digits and a time before all times are no `MsgspecError`."""
_PLACE = re.compile(r" \(byte \d+\)")


def reason(error: Exception) -> str:
    """The same words from pass to pass: without a place in an answer that grows and shrinks."""
    match error:
        case UnicodeDecodeError():
            return "text that is not UTF-8"
        case RecursionError():
            return "it is nested too deeply"
    text = str(error)
    return "a number of too many digits" if "integer string conversion" in text else _PLACE.sub("", text)
