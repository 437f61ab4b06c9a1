"""What a start costs: nobody pays for the official client before something connects."""

from __future__ import annotations

import subprocess
import sys


def test_the_official_client_is_imported_late() -> None:
    """Importing our adapter loads neither `kubernetes` nor `urllib3`: a third of a second, each run."""
    ours = ", ".join(f"eurekube_sync.adapters.kubernetes.{name}" for name in ("client", "connection", "lock_store"))
    code = f"import sys, {ours}; print({{'kubernetes', 'urllib3', 'yaml'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_pod_imports_no_more_of_the_official_client_than_it_uses() -> None:
    """Each pass of a CronJob begins with it; only who has a kubeconfig needs OAuth, and nobody the 700 models."""
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
