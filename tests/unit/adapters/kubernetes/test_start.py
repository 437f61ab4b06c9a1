"""The cost of a start: the official Kubernetes client is imported only before a connection."""

from __future__ import annotations

import subprocess
import sys


def test_the_official_client_is_imported_late() -> None:
    """An import of our adapter does not import `kubernetes`, `urllib3` or `yaml`. This saves a
    third of a second in each run."""
    ours = ", ".join(
        f"eurekube_sync.adapters.kubernetes.{name}"
        for name in ("client", "connection", "lock_store")
    )
    code = f"import sys, {ours}; print({{'kubernetes', 'urllib3', 'yaml'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_pod_imports_no_more_of_the_official_client_than_it_uses() -> None:
    """Each pass of a CronJob pays for this import. Only a kubeconfig needs OAuth, and the 700
    models are never needed."""
    code = """
import sys
from eurekube_sync.adapters.kubernetes.connection import ConnectionSettings, ClientConnection
from eurekube_sync.model.errors import ConfigurationError
try:
    ClientConnection(ConnectionSettings(), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
except ConfigurationError:
    print({"pydantic", "oauthlib", "websocket", "kubernetes.dynamic"} & set(sys.modules))
print("kubernetes.config.incluster_config" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["set()", "True"]
