"""The Kubernetes side: the `Cluster` port on a real or an embedded API server."""

from eurekube_sync.cluster.calls import Backoff
from eurekube_sync.cluster.client import KubernetesCluster
from eurekube_sync.cluster.connection import Connection, ConnectionSettings, connect
from eurekube_sync.cluster.in_process import InProcessConnection

__all__ = ["Backoff", "Connection", "ConnectionSettings", "InProcessConnection", "KubernetesCluster", "connect"]
