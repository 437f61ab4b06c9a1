"""Gives the real servers' fixtures to the tests of a folder, whose conftest imports
`pytest_configure` from here.

The fixtures belong to the session and not to a folder, so that all folders share the servers. A run
of other folders does not import what builds and starts them.
"""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Load the fixtures, which does nothing from the second folder on."""
    config.pluginmanager.import_plugin("tests.servers.fixtures")
