"""eurekube-sync: makes services in a Kubernetes cluster appear in Netflix Eureka."""

__all__ = ["__version__"]

__version__ = "0.1.0"  # the wheel, `--version` and the User-Agent read it here
