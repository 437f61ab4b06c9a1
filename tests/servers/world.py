"""Owns what tests put into a Kubernetes API: namespaces, nodes, services, pods without a kubelet,
tokens.

Speaks plain REST to any Kubernetes API, real or embedded, given its address, a token and its
certificate authority.
"""

import json
import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from tests.planted import plant
from tests.waiting import wait_until

Json = dict[str, Any]
EndpointState = Literal["Ready", "NotReady", "Terminating"]
"""Terminating: it has a deletion timestamp, whether it still serves or not."""

_POLL_SECONDS = 0.05
_TIMEOUT_SECONDS = 60.0
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
_AFTER_A_WHILE = Retry(
    total=20,
    connect=0,
    read=0,
    status_forcelist=[429],
    allowed_methods=None,
    raise_on_status=False,
)
"""A server that is busy, or takes in a changed CustomResourceDefinition, answers 429 with
Retry-After; kubectl waits and asks again, and so do tests."""


class KubernetesWorld:
    """Makes and changes objects in one Kubernetes API."""

    def __init__(self, url: str, *, token: str | None = None, ca_file: Path | None = None) -> None:
        """`url` has no slash at the end; `ca_file` None trusts the usual authorities."""
        self.url = url
        self._session = requests.Session()
        self._session.mount(url, HTTPAdapter(max_retries=_AFTER_A_WHILE))
        self._verify: bool | str = str(ca_file) if ca_file else True
        if token is not None:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def request(
        self, method: str, path: str, body: Json | None = None, *, patch_type: str = _MERGE_PATCH
    ) -> Json:
        """Send one request and return the answer's JSON. Raises `requests.HTTPError`, with the
        answer's text."""
        content_type = patch_type if method == "PATCH" else "application/json"
        answer = self._session.request(
            method,
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type} if body is not None else None,
            verify=self._verify,
            timeout=_TIMEOUT_SECONDS,
        )
        if not answer.ok:
            raise requests.HTTPError(
                f"{method} {path}: {answer.status_code} {answer.text[:500]}", response=answer
            )
        found: Json = answer.json()
        return found

    def create_namespace(self, name: str) -> Json:
        """Create a namespace."""
        return self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def create_node(self, name: str, *, zone: str | None = None) -> Json:
        """Create a node, which pods need to get into a slice; `zone` becomes its zone label."""
        labels = {"topology.kubernetes.io/zone": zone} if zone else {}
        return self.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})

    def create_service(
        self,
        namespace: str,
        name: str,
        *,
        ports: Mapping[str, int] | Sequence[Json],
        selector: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Json:
        """Create a Service; `ports` maps names to numbers (the target port is the same), or is the
        API's own list.

        `selector` None is the label `app=<name>`, `labels` None are the selector's; `spec` is the
        rest of it.
        """
        chosen = {"app": name} if selector is None else dict(selector)
        listed = (
            [{"name": port, "port": number, "targetPort": number} for port, number in ports.items()]
            if isinstance(ports, Mapping)
            else list(ports)
        )
        metadata = {
            "name": name,
            "labels": dict(chosen if labels is None else labels),
            "annotations": annotations or {},
        }
        body = {"metadata": metadata, "spec": {"selector": chosen, "ports": listed, **spec}}
        return self.request("POST", f"/api/v1/namespaces/{namespace}/services", body)

    def create_pod(
        self,
        namespace: str,
        name: str,
        *,
        labels: Mapping[str, str],
        node: str,
        ips: Sequence[str],
        ports: Mapping[str, int] | None = None,
        annotations: Mapping[str, str] | None = None,
        ready: bool = True,
        **spec: Any,
    ) -> Json:
        """Create a pod on an existing node and return it.

        It runs at `ips`, of which the first is its main one; without any it is pending.
        """
        listed = [{"name": port, "containerPort": number} for port, number in (ports or {}).items()]
        container = {"name": "app", "image": "example.invalid/app:1", "ports": listed}
        body = {
            "metadata": {
                "name": name,
                "labels": dict(labels),
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "nodeName": node,
                "containers": [container],
                "terminationGracePeriodSeconds": 30,
                **spec,
            },
        }
        self.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        status: Json = {"phase": "Pending", "conditions": [_ready_condition(ready and bool(ips))]}
        if ips:
            status |= {"phase": "Running", "podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
        return self.patch_pod_status(namespace, name, status)

    def set_ready(self, namespace: str, pod: str, ready: bool) -> Json:
        """Set a pod's Ready condition, as its kubelet would; the other conditions stay."""
        return self.patch_pod_status(namespace, pod, {"conditions": [_ready_condition(ready)]})

    def patch_pod_status(self, namespace: str, pod: str, status: Json) -> Json:
        """Merge into a pod's status; of the conditions only those given change."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/status"
        return self.request("PATCH", path, {"status": status}, patch_type=_STRATEGIC_MERGE_PATCH)

    def delete_pod(self, namespace: str, pod: str, *, grace_seconds: int = 0) -> Json:
        """Delete a pod: at once with 0, else it stays, terminating, until it is deleted with 0."""
        return self.request(
            "DELETE",
            f"/api/v1/namespaces/{namespace}/pods/{pod}",
            {"gracePeriodSeconds": grace_seconds},
        )

    def endpoint_states(self, namespace: str, service: str) -> dict[str, EndpointState]:
        """Return each address in the slices of a Service with its state."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        slices = self.request(
            "GET", f"{path}?labelSelector=kubernetes.io/service-name%3D{service}"
        )["items"]
        return {
            address: _state(endpoint.get("conditions") or {})
            for each in slices
            for endpoint in each.get("endpoints") or []
            for address in endpoint["addresses"]
        }

    def wait_for_slices(
        self,
        namespace: str,
        service: str,
        expected: Mapping[str, EndpointState],
        *,
        timeout_seconds: float = 300.0,
    ) -> None:
        """Wait until the slices of a Service have exactly these addresses and states. Raises
        AssertionError."""
        deadline = time.monotonic() + timeout_seconds
        while (found := self.endpoint_states(namespace, service)) != expected:
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"slices of {namespace}/{service}: {found}, expected {dict(expected)}"
                )
            time.sleep(_POLL_SECONDS)

    def wait_for_right(
        self,
        user: str,
        verb: str,
        resource: str,
        *,
        group: str = "",
        namespace: str | None = None,
        name: str | None = None,
        granted: bool = True,
        timeout_seconds: float = 300.0,
    ) -> None:
        """Wait until the API server knows that a user has a right, or no longer has it: what is
        written to roles takes effect a moment later. `resource` may be one of a subresource,
        `pods/status`. Raises AssertionError."""
        whole, _, part = resource.partition("/")
        asked = {"verb": verb, "group": group, "resource": whole, "subresource": part}
        asked |= {"namespace": namespace or "", "name": name or ""}
        review = {"spec": {"user": user, "resourceAttributes": asked}}
        deadline = time.monotonic() + timeout_seconds
        while (
            self.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)[
                "status"
            ]["allowed"]
            is not granted
        ):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{user} {'may not yet' if granted else 'still may'} {verb} {resource}"
                )
            time.sleep(_POLL_SECONDS)

    def wait_for_rules(self, user: str, documents: Sequence[Json], *, granted: bool = True) -> None:
        """Wait until the API server knows that a user has every right of the Roles and ClusterRoles
        among these documents, or has none of them any more: each role comes to it by itself."""
        for role in documents:
            namespace = role["metadata"].get("namespace")
            for rule in role.get("rules", ()):
                names = rule.get("resourceNames", [None])
                for verb, group, resource, name in product(
                    rule["verbs"], rule["apiGroups"], rule["resources"], names
                ):
                    self.wait_for_right(
                        user,
                        verb,
                        resource,
                        group=group,
                        namespace=namespace,
                        name=name,
                        granted=granted,
                    )

    def create_service_account(self, namespace: str, name: str) -> Json:
        """Create a service account without any right."""
        return self.request(
            "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}}
        )

    def mint_token(
        self, namespace: str, service_account: str, *, lifetime_seconds: int = 3600
    ) -> str:
        """Return a new token of a service account, by TokenRequest, that the API takes: the
        authenticator may know an account of that name that was deleted. The API's shortest lifetime
        is 600 seconds."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        token: str = self.request("POST", path, {"spec": {"expirationSeconds": lifetime_seconds}})[
            "status"
        ]["token"]
        headers = {"Authorization": f"Bearer {token}"}

        def taken() -> bool:
            answer = requests.get(
                f"{self.url}/version",
                headers=headers,
                verify=self._verify,
                timeout=_TIMEOUT_SECONDS,
            )
            return answer.status_code != 401

        wait_until(taken, f"the token of {namespace}/{service_account} is refused")
        return token


def write_kubeconfig(
    path: Path, *, url: str, token: str, ca_file: Path | None = None, namespace: str = "default"
) -> Path:
    """Write a kubeconfig (JSON, which is YAML) for one API and token, readable by us alone, and
    return its path."""
    cluster = {"server": url} | ({"certificate-authority": str(ca_file)} if ca_file else {})
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
        ],
        "current-context": "test",
    }
    plant("the token of a service account", token)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2))
    return path


def _ready_condition(ready: bool) -> Json:
    return {"type": "Ready", "status": "True" if ready else "False"}


def _state(conditions: Mapping[str, bool | None]) -> EndpointState:
    if conditions.get("terminating"):
        return "Terminating"
    return "NotReady" if conditions.get("ready") is False else "Ready"
