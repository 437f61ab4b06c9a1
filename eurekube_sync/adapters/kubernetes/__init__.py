"""The ports `Cluster`, `LockStore` and `Details` on a Kubernetes API server."""
