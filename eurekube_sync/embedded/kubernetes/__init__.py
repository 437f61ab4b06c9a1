"""The embedded Kubernetes API: `EmbeddedKubernetes(now).handle(request)`."""

from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes

__all__ = ["EmbeddedKubernetes"]
