"""What values need beside msgspec's Struct: `replace`, and a base that hides the fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # A Struct is a dataclass to the type checker (PEP 681), which checks the arguments of this
    # `replace`. It cannot check those of msgspec's.
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["Hidden", "replace"]


class Hidden:
    """A base, before Struct, of values that have secrets: `repr` and rich show no field."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []
