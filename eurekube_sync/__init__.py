"""eurekube-sync: makes services in a Kubernetes cluster appear in Netflix Eureka."""

from eurekube_sync.version import __version__

__all__ = ["__version__"]
