"""`check`: it finds each planted fault with its reason and grade, and finds nothing without a
fault."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import Ended, Program, empty, syncer
from tests.command.terminal import ESCAPE, at_terminal
from tests.command.test_explain import SNAPSHOTS, WRITE, _is_command, _still
from tests.embedded.access import Denial
from tests.faults import FAULTS, Environment, Fault, Scene
from tests.servers.world import KubernetesWorld

LOCK = "operators/installation"


@dataclass(frozen=True, kw_only=True)
class Set:
    """A set-up without a fault."""

    scene: Scene
    program: Program

    def check(self, *options: str, **environment: str) -> Ended:
        return self.program.command("check", "--lock", LOCK, *options, **environment)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Set]:
    """One set-up for all tests, each of which removes its fault again."""
    with empty(tmp_path_factory.mktemp("check")) as program:
        world = KubernetesWorld(program.playground.kubernetes_url)
        for name in ("operators", "shop"):
            world.create_namespace(name)

        @contextmanager
        def without_right(verb: str, resource: str) -> Iterator[Environment]:
            denials = program.playground.kubernetes.access.denials
            denials.add(denial := Denial(verb=verb, resource=resource))
            yield {}
            denials.remove(denial)

        scene = Scene(
            world=world,
            eureka_url=program.playground.eureka_url,
            namespace="shop",
            owner="demo",
            lock=LOCK,
            without_right=without_right,
        )

        def run() -> None:
            ended = program.run("--lock", LOCK)
            assert ended.code == ExitCode.OK, ended.out + ended.err

        scene.set_up(run)
        yield Set(scene=scene, program=program)


@pytest.fixture(autouse=True)
def still_good(healthy: Set) -> None:
    """The set-up stays good, however long earlier tests took."""
    healthy.scene.stay()


def test_nothing_is_found_where_nothing_is_wrong(healthy: Set) -> None:
    """The exit code is 0, and nothing is stored: `check` renews an unknown instance, registers one
    that Eureka refuses, and asks about rights."""
    before = healthy.program.playground.kubernetes.revision
    ended = healthy.check("-o", "json")
    data = json.loads(ended.out)
    assert [one for one in data["findings"] if one["grade"] != "ok"] == []
    assert {one["check"] for one in data["findings"]} == {
        "Kubernetes",
        "Clock",
        "Crd",
        "EurekaRead",
        "EurekaWrite",
        "SelfPreservation",
        "Replicas",
        "Rights",
        "Owner",
        "LastPass",
        "PodEnd",
    }
    assert (ended.code, data["exitCode"]) == (ExitCode.OK, 0)
    assert healthy.program.playground.kubernetes.revision == before
    assert ended.eureka.keys() == {"GET", "PUT", "POST"}
    assert (ended.eureka["PUT"], ended.eureka["POST"]) == (1, 1)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_planted_fault_is_found(healthy: Set, fault: Fault) -> None:
    """The finding has its reason, its grade, the fix and a link. No other check fails for it."""
    with fault.plant(healthy.scene) as environment:
        ended = healthy.check("-o", "json", **environment)
    data = json.loads(ended.out)
    found = [one for one in data["findings"] if one["grade"] != "ok"]
    assert {one["check"] for one in found} == {fault.check}, ended.out
    assert any(fault.says in one["text"] and one["grade"] == fault.grade for one in found), (
        ended.out
    )
    assert all(one["fix"] and one["docs"] for one in found)
    assert ended.code == (ExitCode.CHECK_FAILED if fault.grade == "failed" else ExitCode.OK)


def test_status_says_which_fields_the_crd_drops(healthy: Set) -> None:
    """It is where a person looks who misses them, and it is no fault of a syncer."""
    (fault,) = [fault for fault in FAULTS if fault.about == "the CRD drops fields"]
    told = "is older than this program, and drops spec.suspend, status.vipAddress: "
    assert told not in healthy.program.command("status").out
    with fault.plant(healthy.scene) as environment:
        ended = healthy.program.command("status", **environment)
        data = json.loads(healthy.program.command("status", "-o", "json", **environment).out)
        explained = healthy.program.command("explain", "shop/orders", **environment)
    assert told in ended.out
    assert told in explained.out
    assert "Then apply each object again that sets a dropped field: it was not stored" in ended.out
    assert ended.code == explained.code == ExitCode.OK
    (sentence,) = data["droppedByCrd"]
    assert told in sentence


@pytest.mark.parametrize(
    ("service", "code"),
    [
        ({"hostname": "a.example.com"}, ExitCode.OK),
        ({"address": "NodePort"}, ExitCode.CHECK_FAILED),
    ],
)
def test_the_right_to_nodes_is_for_node_ports(
    healthy: Set, service: dict[str, str], code: ExitCode
) -> None:
    """The chart grants it only on demand. A load balancer or a host name needs none."""
    manifest = syncer(
        "outside", {"mode": "service", "selector": {"app": "orders"}, "service": service}
    )
    manifest["metadata"]["namespace"] = "shop"
    healthy.program.playground.create(manifest)
    try:
        with healthy.scene.without_right("list", "nodes"):
            ended = healthy.check("-o", "json")
    finally:
        healthy.program.playground.delete("EurekaSyncer", "shop", "outside")
    failed = [one for one in json.loads(ended.out)["findings"] if one["grade"] == "failed"]
    assert ended.code == code, ended.out
    assert [one["text"].startswith("the right to list nodes is not granted") for one in failed] == [
        True
    ] * (code != ExitCode.OK)


def test_a_right_that_only_grants_need_is_found_where_they_are_asked_for(healthy: Set) -> None:
    """Without Namespaces such an installation registers nothing new."""
    with healthy.scene.without_right("list", "namespaces"):
        assert healthy.check().code == ExitCode.OK
        ended = healthy.check("--require-app-grant", "-o", "json")
    failed = [one for one in json.loads(ended.out)["findings"] if one["grade"] == "failed"]
    assert [one["check"] for one in failed] == ["Rights"]
    assert failed[0]["text"].startswith(
        "the right to list namespaces is not granted for the whole cluster"
    )
    assert ended.code == ExitCode.CHECK_FAILED


def test_a_replica_that_nobody_names_is_found(healthy: Set) -> None:
    """The servers themselves say to which replicas they replicate."""
    eureka = healthy.program.playground.eureka
    eureka.replicas = ("http://eureka-2:8761/eureka/",)
    try:
        ended = healthy.check("-o", "json")
    finally:
        eureka.replicas = ()
    found = [one for one in json.loads(ended.out)["findings"] if one["grade"] != "ok"]
    assert [one["check"] for one in found] == ["Replicas"]
    assert "http://eureka-2:8761/eureka" in found[0]["text"]


def test_before_an_installation_only_what_it_needs_is_checked(healthy: Set) -> None:
    """These are both servers, and the rights of the person who installs."""
    ended = healthy.check("--pre", "-o", "json")
    checks = {one["check"] for one in json.loads(ended.out)["findings"]}
    assert checks == {
        "Kubernetes",
        "Clock",
        "Crd",
        "EurekaRead",
        "EurekaWrite",
        "SelfPreservation",
        "Rights",
    }
    with healthy.scene.without_right("create", "clusterroles"):
        assert healthy.check("--pre").code == ExitCode.CHECK_FAILED


def test_without_a_cluster_it_says_so_alone(healthy: Set) -> None:
    """Checks that need the cluster are left out. Eureka is checked."""
    kubeconfig = healthy.program.kubeconfig_of("http://127.0.0.1:9")
    ended = healthy.check("-o", "json", KUBECONFIG=str(kubeconfig))
    failed = [one["check"] for one in json.loads(ended.out)["findings"] if one["grade"] == "failed"]
    assert (failed, ended.code) == (["Kubernetes"], ExitCode.CHECK_FAILED)


def _steady(text: str) -> str:
    return re.sub(
        r"pass: \S+ \S+ ago by .*",
        "pass: N s ago by operator_1234: RESULT",
        _still(text, seconds=False),
    )


@pytest.mark.parametrize("columns", [80, 120])
def test_the_output_equals_the_reviewed_snapshot(healthy: Set, columns: int) -> None:
    """One output has no fault. The other has two, one of them with lines to add."""
    shown = []
    ends, denied = FAULTS[-1], FAULTS[0]
    _, text = at_terminal(healthy.program, "check", "--lock", LOCK, columns=columns, progress=False)
    shown.append(text)
    with ends.plant(healthy.scene), denied.plant(healthy.scene):
        _, text = at_terminal(
            healthy.program, "check", "--lock", LOCK, columns=columns, progress=False
        )
    shown.append(text)
    plain = [ESCAPE.sub("", one) for one in shown]
    for line in "\n".join(plain).splitlines():
        assert len(line) <= columns or _is_command(line), line
    whole = "\n".join(f"$ eurekube-sync check\n{_steady(one)}" for one in plain)
    file = SNAPSHOTS / f"check-{columns}.txt"
    if os.environ.get(WRITE) == "write":
        file.write_text(whole)
    assert file.read_text() == whole, f"if that is right, {WRITE}=write"
