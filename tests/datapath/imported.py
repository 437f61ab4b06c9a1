"""A Service that leads to the data centre, and its slices, in the shape that an import gives
them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import requests

from tests.servers.data_path import NAMESPACE
from tests.servers.world import Json, KubernetesWorld

IMPORTS = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekaimports"
_MANAGER = "import.eurekube.io"


@dataclass(frozen=True, kw_only=True)
class ImportedService:
    """One Service, made as a test wants it, and the slices beside those of the controllers."""

    world: KubernetesWorld
    namespace: str
    name: str

    def create(self, *, selector: Mapping[str, str] | None = None) -> str:
        """Create the Service, whose only port is 80, and return its ClusterIP. With a selector it
        leads to port 8080 of pods, too."""
        service = self.world.create_service(
            self.namespace,
            self.name,
            ports=[{"name": "http", "port": 80, "targetPort": 8080}],
            selector=selector or {},
            ipFamilyPolicy="SingleStack",
        )
        return str(service["spec"]["clusterIP"])

    def import_app(self, *, adopt: bool = False) -> None:
        """Create the smallest import of the app with the Service's name. The program then makes the
        Service, or adopts one."""
        spec: Json = {"app": self.name}
        if adopt:
            spec["service"] = {"adopt": True}
        body = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaImport",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": spec,
        }
        self.world.request("POST", IMPORTS, body)

    def lead_to(self, servers: Collection[str]) -> None:
        """Make our slices those of exactly these servers, `address:port`: one slice for each port
        number. Nothing is written if nothing changes."""
        addresses: dict[int, list[str]] = {}
        for server in sorted(servers):
            address, port = server.split(":")
            addresses.setdefault(int(port), []).append(address)
        for slice_ in self.slices():
            # What is emptied comes last, so that there is no moment without a server
            addresses.setdefault(slice_["ports"][0]["port"], [])
        for number, of_the_port in addresses.items():
            self._write_slice(number, of_the_port)

    def slices(self) -> list[Json]:
        """Our slices, without those of the controllers."""
        labels = [
            f"kubernetes.io/service-name={self.name}",
            f"endpointslice.kubernetes.io/managed-by={_MANAGER}",
        ]
        return list(
            self.world.request("GET", f"{self._slices}?labelSelector={','.join(labels)}")["items"]
        )

    def versions(self) -> dict[str, str]:
        """Return the resource version of each of our slices, by name."""
        versions = {}
        for slice_ in self.slices():
            versions[slice_["metadata"]["name"]] = slice_["metadata"]["resourceVersion"]
        return versions

    def remove(self) -> None:
        """Delete the Service and the slices, if they exist."""
        paths = [f"/api/v1/namespaces/{self.namespace}/services/{self.name}"]
        paths += [f"{self._slices}/{slice_['metadata']['name']}" for slice_ in self.slices()]
        for path in paths:
            with contextlib.suppress(requests.HTTPError):
                self.world.request("DELETE", path)

    @property
    def _slices(self) -> str:
        return f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"

    def _write_slice(self, port: int, addresses: Collection[str]) -> None:
        name = f"{self.name}-3f393-{port}"
        endpoints = [
            {"addresses": [address], "conditions": {"ready": True}} for address in addresses
        ]
        body = {
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/service-name": self.name,
                    "endpointslice.kubernetes.io/managed-by": _MANAGER,
                    "eurekube.io/import": self.name,
                },
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
            "endpoints": endpoints,
        }
        try:
            self.world.request("POST", self._slices, body)
        except requests.HTTPError as error:
            if error.response is None or error.response.status_code != 409:
                raise
            self.world.request("PATCH", f"{self._slices}/{name}", {"endpoints": endpoints})
