"""Our own errors, one tree; no third-party exception leaves an adapter.

`cause` and `server` say what kind of trouble it is; `controller/exit_codes` has a code for each.
A message is one sentence for a person and says what to do; it never holds a credential or a whole body.
"""

from __future__ import annotations

from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.model.wording import Fault, Path, counted, written

_SHOWN = 3  # how many faults a sentence has


class EurekubeError(Exception):
    """The root: `str(error)` is the sentence to print."""

    cause: Cause | None = None  # None: one object or instance was refused, which says nothing of the others
    server: Server | None = None  # who refused, or cannot be read; None: neither server


class ConfigurationError(EurekubeError):
    cause = Cause.CONFIGURATION  # an option, a file or an environment variable is wrong: nothing was read or written


class InvalidSyncer(EurekubeError):
    """A syncer that cannot be served as it is. `reason` is the CamelCase reason of its condition; `faults` are the
    fields of its spec that are wrong, where the fault is in the spec alone."""

    def __init__(self, reason: str, message: str, *, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.faults = faults


class Faults(dict[Fault, str]):
    """What is wrong with a spec, each fault with its reason: all of it, so that a person hears of it at once."""

    def add(self, path: Path, fault: str, reason: str = "InvalidSpec") -> None:
        """`path` leads from the spec to the field."""
        self[("spec", *path), fault] = reason

    def refusal(self) -> InvalidSyncer:
        """Its reason is that of the first fault."""
        told = []
        for path, fault in list(self)[:_SHOWN]:
            between = " " if fault.startswith("must ") else ": "
            told.append(f"{written(path).removeprefix('.')}{between}{fault}")
        more = len(self) - _SHOWN
        told += [f"and {counted(more, 'more fault')}"] if more > 0 else []
        return InvalidSyncer(next(iter(self.values())), "; ".join(told), faults=tuple(self))


class ClusterError(EurekubeError):
    server = Server.KUBERNETES  # a call to its API failed


class ClusterUnavailable(ClusterError):
    cause = Cause.UNAVAILABLE  # transient (connection, timeout, 429, 5xx): another try may succeed


class ClusterCredentialsLate(ClusterUnavailable):
    """What gives the credentials has not ended: another try would wait as long."""


class ClusterDenied(ClusterError):
    cause = Cause.DENIED  # 401 or 403


class ClusterConflict(ClusterError):
    """The object kept changing; the next pass will see it as it is then."""


class ClusterRejected(ClusterError):
    """Any other refusal, or an answer that makes no sense."""


class ClusterTooLarge(ClusterRejected):
    """The answer has more bytes than are taken. A smaller page of the same list may not."""


class RegistryError(EurekubeError):
    server = Server.EUREKA  # a call to it failed


class RegistryUnavailable(RegistryError):
    cause = Cause.UNAVAILABLE  # transient (connection, timeout, 429, 5xx): another try may succeed


class RegistryDenied(RegistryError):
    cause = Cause.DENIED  # 401, or a 403: login, or CSRF protection in front of writes


class RegistryRejected(RegistryError):
    """Eureka refused this one instance (400)."""


class RegistryStumbled(RegistryRejected):
    """Eureka broke down over this one instance (500), or is broken itself: another peer may take it."""


class RegistryUnusable(RegistryError):
    cause = Cause.UNUSABLE  # an answer that is no Eureka answer: HTML, empty, cut, wrong URL


class SourceUnknown(EurekubeError):
    """A command needs a source that could not be read."""

    def __init__(self, server: Server, unknown: Unknown) -> None:
        super().__init__(unknown.message)
        self.server = server
        self.cause = unknown.cause


class Stopped(EurekubeError):
    cause = Cause.STOPPED  # a signal came before anything was changed; or it ended the story that `demo` tells


class LockLost(EurekubeError):
    cause = Cause.LOCK_LOST  # another copy has the lock that this one had, or worked without while it was unreadable


class Refused(EurekubeError):
    cause = Cause.REFUSED  # a command would do harm, or what it names is not there: nothing was changed


class OwnerClash(Refused):
    cause = Cause.OWNER_CLASH  # another cluster uses the same owner name, or another owner serves the same syncers


def unknown_from(error: ClusterError | RegistryError) -> Unknown:
    """Why a source is Unknown, from the error of the call that reads it."""
    return Unknown(cause=error.cause or Cause.UNUSABLE, message=str(error))
