"""The Kubernetes side: the `Cluster` port on a real or an embedded API server."""

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import Connection, ConnectionSettings, connect
from eurekube_sync.adapters.kubernetes.kubeconfig import own_namespace
from eurekube_sync.adapters.kubernetes.lock_store import LeaseObject

__all__ = ["Connection", "ConnectionSettings", "KubernetesCluster", "LeaseObject", "connect", "own_namespace"]
