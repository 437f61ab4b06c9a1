"""`check` on real servers: it finds each planted fault, and nothing in a healthy set-up with the
shipped rights."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from eurekube_sync.controller.exit_codes import ExitCode
from tests.faults import FAULTS, Environment, Fault, Scene
from tests.integration import forked
from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.situations import NODE

NAMESPACE, OPERATORS, ACCOUNT = "checked", "checkers", "checker"
LOCK = f"{OPERATORS}/installation"
USER = f"system:serviceaccount:{OPERATORS}:{ACCOUNT}"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_SHIPPED = Path(__file__).parents[2] / "cronjob" / "base" / "rights.yaml"


@dataclass(frozen=True, kw_only=True)
class Set:
    """A set-up without a fault, and the installation's account."""

    scene: Scene
    program: Program
    token: str

    def check(self, environment: Mapping[str, str]) -> tuple[int, list[dict[str, Any]]]:
        """The exit code, and the findings that are not ok."""
        kubeconfig = write_kubeconfig(
            self.program.folder / "check", url=self.program.kubernetes.url, token=self.token
        )
        variables = forked.environment(
            EUREKUBE_SYNC_OWNER=self.program.owner,
            EUREKUBE_SYNC_EUREKA_URL=self.scene.eureka_url,
            KUBECONFIG=str(kubeconfig),
        )
        ended = forked.run(
            ["check", "--lock", LOCK, "-o", "json"], {**variables, **environment}, timeout=300
        )
        assert ended.stdout, ended.stderr
        return ended.returncode, [
            one for one in json.loads(ended.stdout)["findings"] if one["grade"] != "ok"
        ]


@pytest.fixture
def healthy(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld
) -> Iterator[Set]:
    """The set-up with exactly the shipped rights."""
    world = kubernetes_world
    for name in (NAMESPACE, OPERATORS):
        world.create_namespace(name)
    with contextlib.suppress(requests.HTTPError):
        world.create_node(NODE)
    with _account(world) as roles:
        token = world.mint_token(OPERATORS, ACCOUNT)

        @contextmanager
        def without_right(verb: str, resource: str) -> Iterator[Environment]:
            group = "eurekube.io"
            (path, role) = next(
                (path, role)
                for path, role in roles
                if any(
                    resource in rule["resources"] and verb in rule["verbs"]
                    for rule in role["rules"]
                )
            )
            rules = [rule for rule in role["rules"] if resource not in rule["resources"]]
            world.request("PATCH", path, {"rules": rules})
            world.wait_for_right(USER, verb, resource, group=group, granted=False)
            yield {}
            world.request("PATCH", path, {"rules": role["rules"]})
            world.wait_for_right(USER, verb, resource, group=group)

        scene = Scene(
            world=world,
            eureka_url=registry.url,
            namespace=NAMESPACE,
            owner=program.owner,
            lock=LOCK,
            without_right=without_right,
        )

        def run() -> None:
            ended = program.run("--lock", LOCK)
            assert ended.returncode == ExitCode.OK, ended.stdout + ended.stderr
            registry.list_follows("ORDERS", [f"{program.owner}:{NAMESPACE}:orders:10.9.1.1:8080"])

        try:
            scene.set_up(run)
            yield Set(scene=scene, program=program, token=token)
        finally:
            for pod in world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
                world.delete_pod(NAMESPACE, pod["metadata"]["name"])
            for name in (NAMESPACE, OPERATORS):
                world.request("DELETE", f"/api/v1/namespaces/{name}")


@contextmanager
def _account(world: KubernetesWorld) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """The shipped roles, bound to an account; each with its path."""
    world.create_service_account(OPERATORS, ACCOUNT)
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": OPERATORS}]
    made: list[tuple[str, dict[str, Any]]] = []
    with contextlib.ExitStack() as stack:
        for role in yaml.safe_load_all(_SHIPPED.read_text()):
            if not role or role["kind"] not in ("Role", "ClusterRole"):
                continue
            folder = f"{_RBAC}/namespaces/{OPERATORS}" if role["kind"] == "Role" else _RBAC
            name, kind = f"check-{role['metadata']['name']}", f"{role['kind'].lower()}s"
            bindings = f"{folder}/{role['kind'].lower()}bindings"
            whole = {"metadata": {"name": name}, "rules": role["rules"]}
            world.request("POST", f"{folder}/{kind}", whole)
            stack.callback(world.request, "DELETE", f"{folder}/{kind}/{name}")
            reference = {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": role["kind"],
                "name": name,
            }
            world.request(
                "POST",
                bindings,
                {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference},
            )
            stack.callback(world.request, "DELETE", f"{bindings}/{name}")
            metadata = {"namespace": OPERATORS} if role["kind"] == "Role" else {}
            world.wait_for_rules(USER, [{"metadata": metadata, "rules": role["rules"]}])
            made.append((f"{folder}/{kind}/{name}", role))
        yield made


def test_planted_faults_are_found_and_nothing_else(healthy: Set) -> None:
    """Without a fault nothing is found. Each fault has its reason and grade."""
    assert healthy.check({}) == (ExitCode.OK, [])
    for fault in FAULTS:
        _is_found(healthy, fault)
    healthy.scene.stay()
    assert healthy.check({}) == (ExitCode.OK, [])


def _is_found(healthy: Set, fault: Fault) -> None:
    healthy.scene.stay()
    with fault.plant(healthy.scene) as environment:
        code, found = healthy.check(environment)
    assert {one["check"] for one in found} == {fault.check}, (fault.about, found)
    assert any(fault.says in one["text"] and one["grade"] == fault.grade for one in found), (
        fault.about,
        found,
    )
    assert code == (ExitCode.CHECK_FAILED if fault.grade == "failed" else ExitCode.OK), fault.about
