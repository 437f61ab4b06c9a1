"""The Kubernetes side: the `Cluster` port on a real or an embedded API server."""

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import Connection, ConnectionSettings, connect

__all__ = ["Connection", "ConnectionSettings", "KubernetesCluster", "connect"]
