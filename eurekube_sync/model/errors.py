"""Our own errors, one tree; no third-party exception leaves an adapter.

    EurekubeError
    ├── ConfigurationError       the caller's setting is wrong: nothing was tried
    ├── InvalidSyncer            one syncer cannot be served; it blocks no other
    ├── ClusterError             a call to the Kubernetes API failed
    │   ├── ClusterUnavailable   transient: connection, timeout, 429, 5xx
    │   ├── ClusterDenied        401 or 403
    │   ├── ClusterConflict      the object changed under us, three times
    │   └── ClusterRejected      any other refusal, or an answer that makes no sense
    ├── RegistryError            a call to Eureka failed
    │   ├── RegistryUnavailable  transient: connection, timeout, 429, 5xx
    │   ├── RegistryDenied       401, or 403 (login, CSRF protection)
    │   ├── RegistryRejected     the server refused this instance (400)
    │   │   └── RegistryStumbled it answered 500 to it: over a bad body, or because it is broken itself
    │   └── RegistryUnusable     an answer that is no Eureka answer: HTML, empty, cut, wrong URL
    ├── SourceUnknown            what a command needs could not be read
    ├── LockLost                 another copy took the lock: the rest of the pass was not done
    ├── Stopped                  a signal came before anything was changed; or it ended the demo
    └── Refused                  a command would do harm, or what it names is not there: nothing was changed
        └── OwnerClash           another cluster uses the same owner name

`cause` and `server` say what kind of trouble it is; `controller/exit_codes` has a code for each.
A message is one sentence for a person and says what to do; it never holds a credential or a whole body.
"""

from __future__ import annotations

from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.model.wording import Fault


class EurekubeError(Exception):
    """The root: `str(error)` is the sentence to print."""

    cause: Cause | None = None  # None: one object or instance was refused, which says nothing of the others
    server: Server | None = None  # who refused, or cannot be read; None: neither server


class ConfigurationError(EurekubeError):
    """An option, a file or an environment variable is wrong; nothing was read or written."""

    cause = Cause.CONFIGURATION


class InvalidSyncer(EurekubeError):
    """A syncer that cannot be served as it is. `reason` is the CamelCase reason of its condition; `faults` are the
    fields of its spec that are wrong, where the fault is in the spec alone."""

    def __init__(self, reason: str, message: str, *, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.faults = faults


class ClusterError(EurekubeError):
    """A call to the Kubernetes API failed."""

    server = Server.KUBERNETES


class ClusterUnavailable(ClusterError):
    """Transient: another try may succeed."""

    cause = Cause.UNAVAILABLE


class ClusterCredentialsLate(ClusterUnavailable):
    """What gives the credentials has not ended: another try would wait as long."""


class ClusterDenied(ClusterError):
    """401 or 403."""

    cause = Cause.DENIED


class ClusterConflict(ClusterError):
    """The object kept changing; the next pass will see it as it is then."""


class ClusterRejected(ClusterError):
    """Any other refusal, or an answer that makes no sense."""


class ClusterTooLarge(ClusterRejected):
    """The answer has more bytes than are taken. A smaller page of the same list may not."""


class RegistryError(EurekubeError):
    """A call to Eureka failed."""

    server = Server.EUREKA


class RegistryUnavailable(RegistryError):
    """Transient: another try may succeed."""

    cause = Cause.UNAVAILABLE


class RegistryDenied(RegistryError):
    """401, or a 403: login, or CSRF protection in front of writes."""

    cause = Cause.DENIED


class RegistryRejected(RegistryError):
    """Eureka refused this one instance."""


class RegistryStumbled(RegistryRejected):
    """Eureka broke down over this one instance, or is broken itself: another peer may take it."""


class RegistryUnusable(RegistryError):
    """The answer is no Eureka answer."""

    cause = Cause.UNUSABLE


class SourceUnknown(EurekubeError):
    """A command needs a source that could not be read."""

    def __init__(self, server: Server, unknown: Unknown) -> None:
        super().__init__(unknown.message)
        self.server = server
        self.cause = unknown.cause


class Stopped(EurekubeError):
    """A signal came before anything was changed; or it ended the story that `demo` tells."""

    cause = Cause.STOPPED


class LockLost(EurekubeError):
    """Another copy has the lock that this one had, or worked without while it could not be read."""

    cause = Cause.LOCK_LOST


class Refused(EurekubeError):
    """A command would do harm, or there is no such instance, syncer or owner; nothing was changed."""

    cause = Cause.REFUSED


class OwnerClash(Refused):
    """Another cluster uses the same owner name, or another owner serves the same syncers."""

    cause = Cause.OWNER_CLASH


def unknown_from(error: ClusterError | RegistryError) -> Unknown:
    """Why a source is Unknown, from the error of the call that reads it."""
    return Unknown(cause=error.cause or Cause.UNUSABLE, message=str(error))
