"""The Kubernetes side: the `Cluster` port on a real or an embedded API server."""
