"""How sure we are of what a server said: a source is Complete, or Unknown with a cause. An error never looks empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar, final

T = TypeVar("T")


class Server(StrEnum):
    KUBERNETES = "Kubernetes"
    EUREKA = "Eureka"


class Cause(StrEnum):
    """Why a source is Unknown, or something failed. `controller/exit_codes` has the exit code of each."""

    UNAVAILABLE = "Unavailable"  # no connection, a timeout, 5xx, or a registry that is still warming up
    DENIED = "Denied"  # 401 or 403
    UNUSABLE = "Unusable"  # an answer that is not what was asked for: HTML, empty, cut, another kind
    CRD_MISSING = "CRDMissing"
    CRD_TERMINATING = "CRDTerminating"
    NOT_READ = "NotRead"  # outside what this pass was asked to read
    CONFIGURATION = "Configuration"  # an option, a file or a variable is wrong
    STOPPED = "Stopped"  # by a signal
    REFUSED = "Refused"  # by this program: nothing was changed
    OWNER_CLASH = "OwnerClash"
    LOCK_LOST = "LockLost"  # another copy has the lock now


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(Generic[T]):
    """All of a source, as it was at one moment. The only thing a removal may be built from."""

    data: T

    @property
    def proof(self) -> Proof:
        """That it was read whole. `Unknown` has none to give."""
        return Proof(self)


@final
@dataclass(frozen=True, slots=True)
class Proof:
    """That a source was read whole: what takes something away cannot be built without one, and only a `Complete` makes
    one. The type checker refuses an `Unknown` here, and so does the program."""

    source: InitVar[Complete[Any]]

    def __post_init__(self, source: Complete[Any]) -> None:
        if type(source) is not Complete:
            raise TypeError(f"a removal cannot rest on {source!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A source that could not be read whole. Never the same as an empty one."""

    cause: Cause
    message: str  # one sentence for a person, which says what to do


Source: TypeAlias = Complete[T] | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Generic[T]):
    """What was listed, namespace by namespace: each is Complete or Unknown by itself."""

    by_namespace: Mapping[str, Source[tuple[T, ...]]]
    elsewhere: Source[tuple[T, ...]]
    """What holds for a namespace that has no entry: `Complete(())` after a complete list of the whole cluster."""

    def of(self, namespace: str) -> Source[tuple[T, ...]]:
        return self.by_namespace.get(namespace, self.elsewhere)
