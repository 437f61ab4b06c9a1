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
    ├── CrdUnusable              the CRD is not there, or is being deleted
    ├── Stopped                  a signal came before anything was changed; or it ended the demo
    └── OwnershipRefused         an `owner` command would do harm: nothing was changed
        ├── StillRenewed         somebody else renews the instances
        ├── NothingThere         no such instance, or no such syncer
        ├── NotKept              `run` would undo it at once
        └── OwnerClash           another cluster uses the same owner name

A message is one sentence for a person and says what to do; it never holds a credential or a whole body.
"""

from __future__ import annotations

from eurekube_sync.model.value_faults import Fault


class EurekubeError(Exception):
    """The root: `str(error)` is the sentence to print."""


class ConfigurationError(EurekubeError):
    """An option, a file or an environment variable is wrong; nothing was read or written."""


class InvalidSyncer(EurekubeError):
    """A syncer that cannot be served as it stands. `reason` is the CamelCase reason of its condition; `faults` are the
    fields of its spec that are wrong, where the fault is in the spec alone."""

    def __init__(self, reason: str, message: str, *, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.faults = faults


class ClusterError(EurekubeError):
    """A call to the Kubernetes API failed."""


class ClusterUnavailable(ClusterError):
    """Transient: another try may succeed."""


class ClusterCredentialsLate(ClusterUnavailable):
    """What gives the credentials has not ended: another try would wait as long."""


class ClusterDenied(ClusterError):
    """401 or 403."""


class ClusterConflict(ClusterError):
    """The object kept changing; the next pass will see it as it is then."""


class ClusterRejected(ClusterError):
    """Any other refusal, or an answer that makes no sense."""


class RegistryError(EurekubeError):
    """A call to Eureka failed."""


class RegistryUnavailable(RegistryError):
    """Transient: another try may succeed."""


class RegistryDenied(RegistryError):
    """401, or a 403: login, or CSRF protection in front of writes."""


class RegistryRejected(RegistryError):
    """Eureka refused this one instance."""


class RegistryStumbled(RegistryRejected):
    """Eureka broke down over this one instance, or is broken itself: another peer may take it."""


class RegistryUnusable(RegistryError):
    """The answer is no Eureka answer."""


class CrdUnusable(EurekubeError):
    """The CRD is not there, or is being deleted: what the cluster says of its objects is nobody's wish."""

    def __init__(self, message: str, *, terminating: bool) -> None:
        super().__init__(message)
        self.terminating = terminating


class Stopped(EurekubeError):
    """A signal came before anything was changed; or it ended the story that `demo` tells."""


class OwnershipRefused(EurekubeError):
    """An `owner` command would do harm; it has changed nothing."""


class StillRenewed(OwnershipRefused):
    """Somebody else renews the instances."""


class NothingThere(OwnershipRefused):
    """No such instance, or no such syncer."""


class NotKept(OwnershipRefused):
    """`run` would undo it at once."""


class OwnerClash(OwnershipRefused):
    """Another cluster uses the same owner name."""
