"""Instances of the data centre in Eureka, as tests register them and see them listed.

An instance is named by where its server listens, `address:port`, which is its id, too. The list is
as old as the server's cache.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import requests

from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer

_TIMEOUT_SECONDS = 30.0


def listed(eureka: EurekaServer, app: str) -> set[str]:
    """Return an app's UP instances. Raises `requests.RequestException`."""
    servers = set()
    for instance in _instances(eureka):
        if instance["app"] == app and instance["status"] == "UP":
            servers.add(f"{instance['ipAddr']}:{instance['port']['$']}")
    return servers


def register(eureka: EurekaServer, app: str, servers: Collection[str]) -> None:
    """Register these instances, which live for an hour."""
    for server in servers:
        address, port = server.split(":")
        Registry(url=eureka.url).register(app, server, address, port=int(port))


def set_down(eureka: EurekaServer, app: str, server: str) -> None:
    """Set an instance's status to DOWN."""
    answer = requests.put(
        f"{eureka.url}/apps/{app}/{server}/status?value=DOWN", timeout=_TIMEOUT_SECONDS
    )
    answer.raise_for_status()


def wait_for_list(eureka: EurekaServer, app: str, servers: Collection[str]) -> None:
    """Wait until an app's UP instances are exactly these."""
    Registry(url=eureka.url).wait_for_list(
        lambda: listed(eureka, app) == set(servers),
        lambda: f"Eureka lists {listed(eureka, app)}, not {sorted(servers)}",
    )


def clear(eureka: EurekaServer) -> None:
    """Cancel every instance, and wait until the list is empty."""

    def cleared() -> bool:
        instances = _instances(eureka)
        for instance in instances:
            requests.delete(
                f"{eureka.url}/apps/{instance['app']}/{instance['instanceId']}",
                timeout=_TIMEOUT_SECONDS,
            )
        return not instances

    Registry(url=eureka.url).wait_for_list(cleared, "the instances do not go")


def _instances(eureka: EurekaServer) -> list[dict[str, Any]]:
    answer = requests.get(
        f"{eureka.url}/apps", headers={"Accept": "application/json"}, timeout=_TIMEOUT_SECONDS
    )
    answer.raise_for_status()
    instances: list[dict[str, Any]] = []
    for app in answer.json()["applications"]["application"]:
        instances.extend(app["instance"])
    return instances
