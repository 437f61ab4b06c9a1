"""The real servers, and a Kubernetes API under test."""

from tests.contract.client_subject import subject
from tests.contract.kubernetes_subject import namespace, node, server
from tests.servers.plugin import pytest_configure

__all__ = ["namespace", "node", "pytest_configure", "server", "subject"]
