"""`explain` and `status` on real servers. A developer asks, with rights in one namespace and no
login for Eureka."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from eurekube_sync.controller.exit_codes import ExitCode
from tests.integration import forked
from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.situations import NODE, SELF_REGISTERED, SITUATIONS, Scene, Situation

_RULES = [
    {"apiGroups": ["eurekube.io"], "resources": ["eurekasyncers"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["get", "list"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list"]},
]
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"


@dataclass(frozen=True, kw_only=True)
class Set:
    """A situation on the real servers, and the developer who asks."""

    situation: Situation
    namespace: str
    program: Program
    token: str

    def command(self, *arguments: str, as_developer: bool) -> subprocess.CompletedProcess[str]:
        """Run it with the developer's token and without a Eureka, or as the operator."""
        token = self.token if as_developer else self.program.token
        path = self.program.folder / ("developer" if as_developer else "operator")
        kubeconfig = write_kubeconfig(path, url=self.program.kubernetes.url, token=token)
        variables = forked.environment(EUREKUBE_SYNC_DEBUG="1", KUBECONFIG=str(kubeconfig))
        if not as_developer:
            variables["EUREKUBE_SYNC_OWNER"] = self.program.owner
            variables["EUREKUBE_SYNC_EUREKA_URL"] = f"{self.program.eureka.url}/eureka"
        return forked.run(arguments, variables, timeout=300)

    def says(self, shown: str, sentences: tuple[str, ...]) -> None:
        words = " ".join(shown.split())
        for sentence in sentences:
            assert sentence.format(self.namespace) in words, shown


@pytest.fixture(params=SITUATIONS, ids=str)
def found(
    request: pytest.FixtureRequest,
    program: Program,
    registry: Registry,
    kubernetes_world: KubernetesWorld,
) -> Iterator[Set]:
    """Each situation in a namespace of its own, where a developer has a ServiceAccount."""
    situation: Situation = request.param
    world, namespace = kubernetes_world, f"explained-{situation.number}"
    world.create_namespace(namespace)
    with contextlib.suppress(requests.HTTPError):
        world.create_node(NODE)

    ids = [
        f"{program.owner}:{namespace}:{app}:10.9.1.{n}:8080"
        for app in ("orders", "bills")
        for n in (1, 2)
    ]

    def follow() -> None:
        """Wait until the list has what was just written to Eureka."""
        for app in ("ORDERS", "BILLS", "ODERS"):
            registry.list_follows(app, [*ids, SELF_REGISTERED])

    def run() -> None:
        follow()
        ended = program.run("--drain-annotations")
        assert ended.returncode in (ExitCode.OK, ExitCode.REMOVAL_HELD), ended.stdout + ended.stderr

    scene = Scene(
        world=world, eureka_url=registry.url, namespace=namespace, run=run, owner=program.owner
    )
    try:
        situation.set_up(scene)
        follow()
        yield Set(
            situation=situation,
            namespace=namespace,
            program=program,
            token=_developer(world, namespace),
        )
    finally:
        requests.delete(f"{registry.url}/apps/ORDERS/{SELF_REGISTERED}", timeout=30)
        requests.delete(f"{registry.url}/apps/ORDERS/{scene.id_of()}/status", timeout=30)
        for pod in world.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]:
            world.delete_pod(namespace, pod["metadata"]["name"])
        world.request("DELETE", f"/api/v1/namespaces/{namespace}")


def _developer(world: KubernetesWorld, namespace: str) -> str:
    """The token of an account that may read only this namespace."""
    world.create_service_account(namespace, "developer")
    role: dict[str, Any] = {
        "metadata": {"name": "developer", "namespace": namespace},
        "rules": _RULES,
    }
    world.request("POST", f"{_RBAC}/{namespace}/roles", role)
    subject = {"kind": "ServiceAccount", "name": "developer", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "developer"}
    binding = {"metadata": {"name": "developer"}, "subjects": [subject], "roleRef": reference}
    world.request("POST", f"{_RBAC}/{namespace}/rolebindings", binding)
    world.wait_for_rules(f"system:serviceaccount:{namespace}:developer", [role])
    return world.mint_token(namespace, "developer")


def test_both_commands_name_the_true_cause(found: Set) -> None:
    """The developer sees it for his namespace, and the operator with Eureka as well."""
    situation, namespace = found.situation, found.namespace
    what = situation.what.format(namespace)

    explained = found.command("explain", what, "-n", namespace, as_developer=True)
    assert explained.returncode == situation.code_without_eureka, (
        explained.stdout + explained.stderr
    )
    found.says(explained.stdout, situation.without_eureka or situation.explains)
    assert "Eureka holds no instance" not in explained.stdout
    shown = found.command("status", "-n", namespace, "-a", as_developer=True)
    assert "instances unknown" in shown.stdout, shown.stdout + shown.stderr

    explained = found.command("explain", what, as_developer=False)
    assert explained.returncode == situation.code, explained.stdout + explained.stderr
    found.says(explained.stdout, situation.explains)
    data = json.loads(found.command("explain", what, "-o", "json", as_developer=False).stdout)
    assert situation.reason in [one["reason"] for one in data["explanations"]]
    shown = found.command("status", "-n", namespace, "-a", as_developer=False)
    assert shown.returncode == situation.status_code, shown.stdout + shown.stderr
    found.says(shown.stdout, situation.shows)
