"""A decorator `dataclass` whose classes are dataclasses to the type checker and structs of msgspec
at run time.

A struct is faster. An `Instance` takes 0.1 µs instead of 1.8 µs to create. Each class takes 0.1 ms
instead of 1.0 ms to define, and a process defines 140 of them before its first pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Callable[[type[T]], type[T]]:
        """As `dataclasses.dataclass`; `dataclasses.replace` and `dataclasses.fields` work, too. A
        class that cannot be a struct, such as one with `repr=False` for a password, becomes a usual
        dataclass."""

        def made(cls: type[T]) -> type[T]:
            marked = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)
            if issubclass(cls, msgspec.Struct):  # because of its base, to which it adds no field
                return marked(cls)
            if not _can_be_struct(cls):
                return dataclasses.dataclass(frozen=frozen, slots=slots, kw_only=kw_only)(cls)
            namespace = dict(vars(marked(cls)))
            for name in ("__dict__", "__weakref__"):
                namespace.pop(name, None)
            for field in dataclasses.fields(cls):
                namespace[field.name] = _default(field)
            bases = (msgspec.Struct, *(base for base in cls.__bases__ if base is not object))
            return type(msgspec.Struct)(
                cls.__name__, bases, namespace, frozen=frozen, kw_only=kw_only, dict=not slots
            )

        return made


derive: Callable[[Any, str, Any], None] = msgspec.structs.force_setattr
"""Sets a field with `init=False` in `__post_init__`."""


def _can_be_struct(cls: type) -> bool:
    """Whether each field is shown and compared, and `__post_init__` only derives fields."""
    derives = False
    for field in vars(cls).values():
        if isinstance(field, dataclasses.Field):
            if not (field.repr and field.compare):
                return False
            derives = derives or not field.init
    return hasattr(cls, "__post_init__") is derives


def _default(field: dataclasses.Field[Any]) -> Any:
    if not field.init:
        return msgspec.field(default=None)
    if field.default_factory is not dataclasses.MISSING:
        return msgspec.field(default_factory=field.default_factory)
    if field.default is not dataclasses.MISSING:
        return msgspec.field(default=field.default)
    return msgspec.field()
