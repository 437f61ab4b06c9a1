"""Owns what a soak keeps in the cluster: Services with hand-written slices, and one syncer for all
of them."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Self

import requests

from tests.servers.world import KubernetesWorld
from tests.soak.watch import Key

_PER_SERVICE = 20


class Shops:
    """So many endpoints in a namespace of their own; a context manager."""

    def __init__(self, world: KubernetesWorld, namespace: str, *, count: int) -> None:
        """Creates them; the CRD has to be there. Each namespace name can be used once."""
        self._world = world
        self._namespace = namespace
        self._services = {
            f"{namespace}-{n}": [
                f"10.30.{n}.{i + 1}" for i in range(min(_PER_SERVICE, count - n * _PER_SERVICE))
            ]
            for n in range(-(-count // _PER_SERVICE))
        }
        world.create_namespace(namespace)
        for service, addresses in self._services.items():
            self._create(service, addresses)
        syncer = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"name": "all", "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"soak": namespace}}},
        }
        world.request("POST", f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers", syncer)

    def keys(self, owner: str) -> list[Key]:
        """What this owner has to hold in Eureka."""
        return [
            Key(service.upper(), f"{owner}:{self._namespace}:{service}:{address}:8080")
            for service, addresses in self._services.items()
            for address in addresses
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        syncer = f"/apis/eurekube.io/v1/namespaces/{self._namespace}/eurekasyncers/all"
        with contextlib.suppress(requests.HTTPError):
            self._world.request("DELETE", syncer)
            self._world.request(
                "PATCH", syncer, {"metadata": {"finalizers": None}}
            )  # nobody is left to clean up
        for service in self._services:
            for path in (
                f"api/v1/namespaces/{self._namespace}/services/{service}",
                self._slice(service),
            ):
                with contextlib.suppress(requests.HTTPError):
                    self._world.request("DELETE", f"/{path}")

    def _create(self, service: str, addresses: list[str]) -> None:
        labels = {"soak": self._namespace}
        body = {
            "metadata": {"name": service, "labels": labels},
            "spec": {"ports": [{"name": "http", "port": 80}]},
        }
        self._world.request("POST", f"/api/v1/namespaces/{self._namespace}/services", body)
        slice_ = {
            "metadata": {"name": f"{service}-1", "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}],
            "endpoints": [
                {"addresses": [address], "conditions": {"ready": True}} for address in addresses
            ],
        }
        self._world.request("POST", f"/{self._slice(service).rpartition('/')[0]}", slice_)

    def _slice(self, service: str) -> str:
        return f"apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices/{service}-1"
