"""Questions of `explain` about syncers that the installation does not serve: the question by app,
address or id needs no namespace, and both screens say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import IDS, Program, rating
from tests.servers.world import KubernetesWorld

SYNCER = "/apis/eurekube.io/v1/namespaces/rating/eurekasyncers/rating"


def _give_class(program: Program) -> None:
    world = KubernetesWorld(program.playground.kubernetes_url)
    world.request("PATCH", SYNCER, {"spec": {"syncerClass": "dc-west"}})


@pytest.mark.parametrize("what", ["RATING", "10.0.0.1", IDS[0], "rating/rating"])
def test_an_app_of_a_class_that_nobody_serves_has_that_cause(tmp_path: Path, what: str) -> None:
    """The installation of before renews its instances, which proves nothing."""
    with rating(tmp_path) as program:
        assert program.run().code == ExitCode.OK
        _give_class(program)
        assert program.run().code == ExitCode.OK
        explained, shown = program.command("explain", what), program.command("status")
        for ended in (explained, shown):
            assert ended.code == ExitCode.NOT_REGISTERED, ended.out + ended.err
            assert "no installation seems to serve class dc-west" in ended.out
        assert "Next: remove spec.syncerClass" in explained.out
        assert "an installation of syncers without a class registered them" in " ".join(
            explained.out.split()
        )


def test_the_class_of_another_installation_is_served(tmp_path: Path) -> None:
    """It has registered the instances with its mark."""
    with rating(tmp_path) as program:
        _give_class(program)
        assert program.run("--syncer-class", "dc-west").code == ExitCode.OK
        explained = program.command("explain", "RATING")
        assert explained.code == ExitCode.OK, explained.out + explained.err
        assert "another installation serves it (class dc-west)" in explained.out


def test_a_namespace_out_of_scope_has_the_next_question(tmp_path: Path) -> None:
    with rating(tmp_path) as program:
        assert program.run().code == ExitCode.OK
        ended = program.command("explain", "rating/rating", EUREKUBE_SYNC_NAMESPACE="default")
        assert ended.code == ExitCode.INCOMPLETE
        assert "Next: eurekube-sync explain rating/rating -n rating" in ended.out
        asked = program.command("explain", "rating/rating", "-n", "rating")
        assert asked.code == ExitCode.OK, asked.out + asked.err
