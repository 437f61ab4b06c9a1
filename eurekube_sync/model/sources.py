"""A source, such as a list, is Complete, or Unknown with a cause. An error is never treated as an
empty list."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar, final

from msgspec import Struct

T = TypeVar("T")


class Server(StrEnum):
    KUBERNETES = "Kubernetes"
    EUREKA = "Eureka"


class Cause(StrEnum):
    """Why a source is Unknown, or why something failed. `controller/exit_codes` has the exit code
    of each."""

    UNAVAILABLE = (
        "Unavailable"  # no connection, a timeout, 5xx, or a Eureka that is still warming up
    )
    DENIED = "Denied"  # 401 or 403
    # An answer that is not of the expected kind: HTML, empty, truncated, another object
    UNUSABLE = "Unusable"
    CRD_MISSING = "CRDMissing"
    API_MISSING = "APIMissing"  # an API that only some syncers need is not installed
    CRD_TERMINATING = "CRDTerminating"
    NOT_READ = "NotRead"  # this pass did not read it
    CONFIGURATION = "Configuration"  # an option, a file or a variable is wrong
    STOPPED = "Stopped"  # by a signal
    REFUSED = "Refused"  # this program refused, and changed nothing
    OWNER_CLASH = "OwnerClash"
    LOCK_LOST = "LockLost"  # another replica has the lock now


class Complete(Struct, Generic[T], frozen=True, kw_only=True):
    """A source that was read completely. Only such a source allows a removal."""

    data: T

    @property
    def proof(self) -> Proof:
        return Proof(self)


@final
class Proof:
    """The proof that a source was read completely, which each removal needs. The type checker and
    `__init__` refuse a proof of anything but a `Complete`."""

    __slots__ = ()

    def __init__(self, source: Complete[Any]) -> None:
        if type(source) is not Complete:
            raise TypeError(f"a removal cannot rest on {source!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proof)

    def __hash__(self) -> int:
        return hash(Proof)


class Unknown(Struct, frozen=True, kw_only=True):
    """A source that could not be read completely."""

    cause: Cause
    message: str  # a sentence without its full stop; says what to do


Source: TypeAlias = Complete[T] | Unknown


class Listed(Struct, Generic[T], frozen=True, kw_only=True):
    """A list by namespace. Each part is Complete or Unknown by itself."""

    by_namespace: Mapping[str, Source[tuple[T, ...]]]
    elsewhere: Source[
        tuple[T, ...]
    ]  # of all other namespaces: `Complete(())` if the whole cluster was listed

    def of(self, namespace: str) -> Source[tuple[T, ...]]:
        return self.by_namespace.get(namespace, self.elsewhere)
