"""What a pod knows of itself, where its service account says it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eurekube_sync.model.errors import ConfigurationError

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace(
    environ: Mapping[str, str], *, kubeconfig: str = "", context: str = "", file: Path = _NAMESPACE
) -> str | None:
    """The namespace of this pod; None outside of a cluster, or where a kubeconfig leads to another one. Raises
    ConfigurationError."""
    if kubeconfig or context or not environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the namespace of this pod cannot be read in {file}: give --lock NAMESPACE/NAME, or --lock off"
        ) from error
