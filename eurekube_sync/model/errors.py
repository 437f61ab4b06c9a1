"""The errors of the program. Adapters turn each third-party exception into one of these.

`controller/exit_codes` derives the exit code from `cause` and `server`. A message is a sentence for
a person and says what to do. Its full stop is left to who shows it, because it often stands within
another sentence. It never contains a credential or a whole response body.
"""

from __future__ import annotations

from eurekube_sync.model.faults import Fault, Path, written
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.model.text import counted

_SHOWN = 3  # how many faults a message lists


class EurekubeError(Exception):
    """The base class. `str(error)` is the sentence to print, without its full stop."""

    cause: Cause | None = None  # None: only one object or instance was refused
    server: Server | None = None  # the server that refused or cannot be read; None: neither server


class ConfigurationError(EurekubeError):
    cause = (
        Cause.CONFIGURATION
    )  # an option, a file or an environment variable is wrong: nothing was read or written


class InvalidSyncer(EurekubeError):
    """A syncer that cannot be served. `reason` is the reason of its condition; `faults` are the
    invalid fields of its spec, and empty if the spec is valid by itself. `edit` is the object to
    correct, such as `service rating`; empty if it is the syncer."""

    def __init__(
        self, reason: Reason, message: str, *, faults: tuple[Fault, ...] = (), edit: str = ""
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.faults = faults
        self.edit = edit


class Faults(dict[Fault, Reason]):
    """All faults of a spec, each with its reason."""

    def add(self, path: Path, fault: str, reason: Reason = Reason.INVALID_SPEC) -> None:
        """Add a fault of the field at `path`, which begins below `spec`."""
        self[("spec", *path), fault] = reason

    def refusal(self) -> InvalidSyncer:
        """Return the error for all faults, with the reason of the first one."""
        clauses = []
        for path, fault in list(self)[:_SHOWN]:
            between = " " if fault.startswith("must ") else ": "
            clauses.append(f"{written(path).removeprefix('.')}{between}{fault}")
        more = len(self) - _SHOWN
        if more > 0:
            clauses.append(f"and {counted(more, 'more fault')}")
        return InvalidSyncer(next(iter(self.values())), "; ".join(clauses), faults=tuple(self))


class ClusterError(EurekubeError):
    server = Server.KUBERNETES  # a call to its API failed


class ClusterUnavailable(ClusterError):
    cause = Cause.UNAVAILABLE  # transient (connection, timeout, 429, 5xx): another try may succeed


class ClusterCredentialsMissing(ClusterUnavailable):
    """The kubeconfig names credentials, and does not yield any, or not in time. Another try would
    fail in the same way, and the next pass may not."""


class ClusterDenied(ClusterError):
    cause = Cause.DENIED  # 401 or 403


class ClusterConflict(ClusterError):
    """The object kept changing. The next pass reads it again."""


class ClusterExists(ClusterConflict):
    """An object of this name exists, which no list of the pass had."""


class ClusterRejected(ClusterError):
    """Any other refusal, or an answer that cannot be understood."""


class ClusterTooLarge(ClusterRejected):
    """The answer is larger than the limit. A smaller page of the same list may be below the
    limit."""


class RegistryError(EurekubeError):
    server = Server.EUREKA  # a call to it failed


class RegistryUnavailable(RegistryError):
    cause = Cause.UNAVAILABLE  # transient (connection, timeout, 429, 5xx): another try may succeed


class RegistryDenied(RegistryError):
    cause = Cause.DENIED  # 401, or a 403: login, or CSRF protection in front of writes


class RegistryRejected(RegistryError):
    """Eureka refused this one instance (400)."""


class RegistryStumbled(RegistryRejected):
    """Eureka answered 500 for this one instance. Another peer may accept the instance."""


class RegistryUnusable(RegistryError):
    cause = (
        Cause.UNUSABLE
    )  # the answer is not one of Eureka's: HTML, empty, truncated, or a wrong URL


class SourceUnknown(EurekubeError):
    """A source could not be read, and a command or a syncer needs it."""

    def __init__(self, server: Server, unknown: Unknown) -> None:
        super().__init__(unknown.message)
        self.unknown = unknown
        self.server = server
        self.cause = unknown.cause


class Stopped(EurekubeError):
    cause = Cause.STOPPED  # a signal came before anything was changed, or during `demo`


class LockLost(EurekubeError):
    cause = (
        Cause.LOCK_LOST
    )  # another replica has the lock now; this replica had it, or worked while it could not be read


class Refused(EurekubeError):
    cause = (
        Cause.REFUSED
    )  # a command would do harm, or its argument names nothing: nothing was changed


class OwnerClash(Refused):
    cause = (
        Cause.OWNER_CLASH
    )  # another cluster uses the same owner name, or another owner serves the same syncers


def unknown_from(error: ClusterError | RegistryError) -> Unknown:
    """Return the Unknown source of a failed read."""
    return Unknown(cause=error.cause or Cause.UNUSABLE, message=str(error))
