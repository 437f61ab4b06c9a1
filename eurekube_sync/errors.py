"""Our own errors, one tree; no third-party exception leaves an adapter.

    EurekubeError
    ├── ConfigurationError       the caller's setting is wrong: nothing was tried
    ├── InvalidSyncer            one syncer cannot be served; it blocks no other
    ├── ClusterError             a call to the Kubernetes API failed
    │   ├── ClusterUnavailable   transient: connection, timeout, 429, 5xx
    │   ├── ClusterDenied        401 or 403
    │   ├── ClusterConflict      the object changed under us, three times
    │   └── ClusterRejected      any other refusal, or an answer that makes no sense
    └── RegistryError            a call to Eureka failed
        ├── RegistryUnavailable  transient: connection, timeout, 429, 5xx
        ├── RegistryDenied       401, or 403 (login, CSRF protection)
        ├── RegistryRejected     the server refused this instance (400)
        │   └── RegistryStumbled it answered 500 to it: over a bad body, or because it is broken itself
        └── RegistryUnusable     an answer that is no Eureka answer: HTML, empty, cut, wrong URL

A message is one sentence for a person and says what to do; it never holds a credential or a whole body.
"""

from __future__ import annotations


class EurekubeError(Exception):
    """The root: `str(error)` is the sentence to print."""


class ConfigurationError(EurekubeError):
    """An option, a file or an environment variable is wrong; nothing was read or written."""


class InvalidSyncer(EurekubeError):
    """A syncer that cannot be served as it stands. `reason` is the CamelCase reason of its condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ClusterError(EurekubeError):
    """A call to the Kubernetes API failed."""


class ClusterUnavailable(ClusterError):
    """Transient: another try may succeed."""


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
