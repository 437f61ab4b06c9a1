"""A broken syncer blocks no other, reports its error, and keeps its instances."""

from __future__ import annotations

import time
from typing import Any

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Request
from tests.command.program import IDS, SYNCERS, Program, syncer

LONG_HOST = "podName." + "a" * 70  # a label has at most 63 characters
PLAIN = {"selector": {"app": "rating"}, "port": "http"}
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "long-host": ({**PLAIN, "hostName": LONG_HOST}, "NoHostName"),
    "no-such-port": ({**PLAIN, "port": "grpc"}, "NoSuchPort"),
    "no-match": ({"selector": {"app": "nothing"}}, "NoMatchingService"),
    "long-name": ({**PLAIN, "appName": "x" * 129}, "InvalidName"),
    "bad-key": ({**PLAIN, "appName": "a", "metadata": {"two words": "x"}}, "InvalidMetadata"),
    "expression": (
        {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "InvalidSpec",
    ),
    "policy": ({**PLAIN, "appName": "c", "policy": "Never"}, "InvalidSpec"),
    "gate": ({**PLAIN, "appName": "d", "readinessGate": "yes"}, "InvalidSpec"),
    "elsewhere": ({"selector": {"app": "rating", "namespace": "other"}}, "NamespaceNotAllowed"),
    "nonsense": ({"selector": "rating"}, "InvalidSpec"),
}


def test_broken_syncers_block_no_other(program: Program) -> None:
    """The good syncer registers beside ten broken ones, each of which has its reason, an event and
    a sentence."""
    with program.playground.kubernetes.older_definition():
        for name, (spec, _) in BROKEN.items():
            program.playground.create(syncer(name, spec))
    ended = program.run()
    assert ended.code == ExitCode.OK, ended.out
    assert [program.status(id_) for id_ in IDS] == ["UP", "UP"]
    assert program.conditions("rating")["Ready"] == ("True", "InSync")
    for name, (_, reason) in BROKEN.items():
        assert program.conditions(name)["Ready"] == ("False", reason)
        assert program.events(name) == {reason}
        assert (
            sum(f"syncer rating/{name}: {reason}: " in sentence for sentence in ended.sentences)
            == 1
        )
    assert "10 syncers not served" in ended.out
    assert ended.eureka["POST"] == 2

    again = program.run()
    assert again.sentences == ended.sentences, "it is told each time, but written once"
    assert (again.eureka, set(again.kubernetes)) == ({"GET": 1, "PUT": 2}, {"GET"})


@pytest.mark.parametrize("name", ["long-host", "no-match", "long-name", "policy", "nonsense"])
def test_a_syncer_that_becomes_broken_keeps_its_instances(settled: Program, name: str) -> None:
    """A person edits a valid syncer into a broken one. Its instances are renewed."""
    spec, reason = BROKEN[name]
    patch = {"spec": {"port": None, "policy": None, "appName": None, "hostName": None, **spec}}
    with settled.playground.kubernetes.older_definition():
        settled.playground.kubernetes.call("PATCH", f"{SYNCERS}/rating", patch)
    ended = settled.run()
    assert (ended.code, ended.eureka) == (ExitCode.OK, {"GET": 1, "PUT": 2}), ended.out
    assert reason in ended.sentence
    assert settled.conditions("rating")["Ready"] == ("False", reason)
    back = {
        "spec": {"selector": None, "port": None, "appName": None, "hostName": None, "policy": None}
    }
    with settled.playground.kubernetes.older_definition():
        settled.playground.kubernetes.call("PATCH", f"{SYNCERS}/rating", back)
    settled.playground.kubernetes.call("PATCH", f"{SYNCERS}/rating", {"spec": PLAIN})
    assert settled.run().code == ExitCode.OK


def test_an_instance_is_removed_with_its_pod_although_its_syncer_is_broken(
    program: Program,
) -> None:
    """A syncer that is not served adds nothing. It removes an instance only if a list of pods shows
    that its pod is gone."""
    assert program.run().code == ExitCode.OK
    program.playground.kubernetes.call(
        "PATCH", f"{SYNCERS}/rating", {"spec": {"hostName": LONG_HOST}}
    )
    time.sleep(0.1)
    assert program.run().eureka["DELETE"] == 0
    program.playground.delete("Pod", "rating", "rating-2", grace_seconds=0)
    program.playground.create_pod("rating", "rating-3", "10.0.0.3", {"app": "rating"})
    time.sleep(0.1)
    ended = program.run()
    assert (ended.eureka["DELETE"], ended.eureka["POST"]) == (1, 0)
    assert "its pod is gone" in ended.out


def test_a_port_that_is_gone_is_served_on_at_its_number(settled: Program) -> None:
    """A person writes a port that no Service has. The instances show on which number the syncer was
    served."""
    settled.playground.kubernetes.call("PATCH", f"{SYNCERS}/rating", {"spec": {"port": "grpc"}})
    ended = settled.run()
    assert (ended.code, ended.eureka) == (ExitCode.OK, {"GET": 1, "PUT": 2}), ended.out
    assert "no Service has the port 'grpc'" in ended.sentence
    assert "Until then port 8080 is served on" in ended.sentence
    assert settled.conditions("rating")["Ready"][0] == "True"


def test_an_app_that_is_lost_while_its_pods_wait_is_no_success(program: Program) -> None:
    """Eureka starts again without its list, and the syncer is not served."""
    assert program.run().code == ExitCode.OK
    program.playground.kubernetes.call(
        "PATCH", f"{SYNCERS}/rating", {"spec": {"hostName": LONG_HOST}}
    )
    program.playground.eureka.registry.leases.clear()
    time.sleep(0.1)
    ended = program.run()
    assert ended.code == ExitCode.APP_LOST, ended.out
    assert "app RATING has no UP instance in Eureka, and 2 ready endpoints of it wait" in ended.out
    assert program.conditions("rating")["Ready"] == ("False", "LastInstanceLost")


def test_two_syncers_of_one_thing_share_it_peacefully(program: Program) -> None:
    """The older syncer has the instances. The younger one says so in one sentence."""
    assert program.run().code == ExitCode.OK
    program.playground.create(syncer("twin", PLAIN))
    ended = program.run()
    assert (ended.code, ended.eureka) == (ExitCode.OK, {"GET": 1, "PUT": 2}), ended.out
    assert "syncer rating/twin" in ended.sentence
    assert "syncer rating/rating is older and has the address" in ended.sentence


def test_an_instance_of_others_under_our_id_is_not_changed(program: Program) -> None:
    """An instance without our owner's name is never changed. The syncer has the condition
    Conflict."""
    program.playground.register("RATING", IDS[0], "192.0.2.1", 80)
    ended = program.run()
    assert ended.code == ExitCode.OK, ended.out
    (row,) = (
        line
        for line in ended.out.splitlines()
        if "an instance without an owner is registered with the id that ours needs" in line
    )
    assert IDS[0] in row
    assert "1 in conflict" in ended.out
    answer = program.playground.eureka.handle(
        Request(
            method="GET",
            path=f"/eureka/apps/RATING/{IDS[0]}",
            headers={"accept": "application/json"},
        )
    )
    assert b"192.0.2.1" in answer.body
    assert program.conditions("rating")["Conflict"][0] == "True"
