"""The real servers."""

from tests.servers.plugin import pytest_configure

__all__ = ["pytest_configure"]
