"""`status` beside a daemon and a Eureka of stock timings in which nothing changes, so that its list
is minutes old."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import requests

from eurekube_sync.controller.exit_codes import ExitCode
from tests.integration.hand_made import make_app, make_namespace, make_syncer, remove_app
from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NAMESPACE = "quiet"
APPS = ("geo", "mail")
QUIET_SECONDS = 240.0
"""A list may lack the renewals of 210 s, and `status` calls an instance silent after 150 s."""


@pytest.fixture
def apps(kubernetes_world: KubernetesWorld) -> Any:
    """Two apps of two pods each."""
    make_namespace(kubernetes_world, NAMESPACE)
    for number, name in enumerate(APPS):
        remove_app(kubernetes_world, NAMESPACE, name)
        make_app(kubernetes_world, NAMESPACE, name, [f"10.30.{number}.1", f"10.30.{number}.2"])
    yield
    for name in APPS:
        remove_app(kubernetes_world, NAMESPACE, name)


@pytest.mark.parametrize("eureka", ["eureka_stock"], indirect=True)
def test_a_healthy_installation_is_in_sync_however_old_the_list_is(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld, apps: None
) -> None:
    """`status` is asked right after the first pass, and for four minutes more. Another cluster,
    with another owner, has a syncer of the same name, and nobody renews its instance."""
    for name in APPS:
        make_syncer(kubernetes_world, NAMESPACE, name, name)
    _register_anothers(registry)
    daemon = program.start("--daemon", "--interval=10s", "--lock=off")
    try:
        ids = {
            name: f"{program.owner}:{NAMESPACE}:{name}:10.30.{n}.1:8080"
            for n, name in enumerate(APPS)
        }

        def registered() -> bool:
            return all(registry.status(name.upper(), id_) == "UP" for name, id_ in ids.items())

        wait_until(registered, "the daemon registered nothing")
        begun, oldest_listed = time.monotonic(), 0.0
        while time.monotonic() - begun < QUIET_SECONDS:
            shown = _status(program)
            assert shown["exitCode"] == ExitCode.OK, shown
            assert [(one["reason"], one["up"], one["desired"]) for one in shown["syncers"]] == [
                ("InSync", 2, 2)
            ] * 2
            # At first the list has none of the instances.
            assert (shown["eureka"]["oldestRenewalSeconds"] or 0) <= 60, shown
            oldest_listed = max(oldest_listed, _age_in_the_list(registry, program.owner))
            time.sleep(10)
        assert oldest_listed > 150, "the list was never old enough to mislead"
    finally:
        daemon.terminate()
        daemon.communicate(timeout=60)


def _register_anothers(registry: Registry) -> None:
    """Register an instance of the same syncer's name in another cluster, with a long lease."""
    marks = {
        "eurekube.owner": "east",
        "eurekube.cluster": "99999999-2222-3333-4444-555555555555",
        "eurekube.syncer": f"{NAMESPACE}/geo",
    }
    registry.register("GEO", f"east:{NAMESPACE}:geo:10.31.0.1:8080", "10.31.0.1", metadata=marks)


def _status(program: Program) -> dict[str, Any]:
    """The answer of `status` with the options of the daemon."""
    process = program.start("-o", "json", "-n", NAMESPACE, command="status")
    out, err = process.communicate(timeout=120)
    assert out, err
    shown: dict[str, Any] = json.loads(out)
    return {**shown, "exitCode": process.returncode}


def _age_in_the_list(registry: Registry, owner: str) -> float:
    """Seconds since the oldest renewal of the owner's instances, as the list shows it."""
    answer = requests.get(
        f"{registry.url}/apps", headers={"Accept": "application/json"}, timeout=30
    )
    listed = [i for app in answer.json()["applications"]["application"] for i in app["instance"]]
    ours = [i for i in listed if i["metadata"].get("eurekube.owner") == owner]
    # Eureka stores a renewal as the time at which the lease ends.
    renewals = [
        i["leaseInfo"]["lastRenewalTimestamp"] / 1000 - i["leaseInfo"]["durationInSecs"]
        for i in ours
    ]
    return max((time.time() - renewal for renewal in renewals), default=0.0)
