"""The metrics of a pass: they follow its report, and a value that the pass does not know is left
out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from eurekube_sync.cli.monitoring.metrics import (
    ACTIONS,
    AT_RISK,
    BAD,
    EXIT_CODE,
    HELD,
    INSTANCES,
    LAST_GOOD,
    LAST_PASS,
    MOST_NAMED,
    PASSES,
    SYNCERS,
    UNKNOWN,
    UNREADY,
    Metric,
    Values,
    measured,
    scope_text,
)
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import RegistryRejected, RegistryUnavailable
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld


def world(*numbers: int) -> FakeWorld:
    """One syncer with these endpoints."""
    found = FakeWorld()
    found.cluster.apply(syncer(), service(), piece(*(endpoint(number) for number in numbers)))
    return found


def of(report: PassReport, code: ExitCode = ExitCode.OK) -> Values:
    """Return gauges and counters together."""
    gauges, added = measured(report, code, now=5.0)
    return {**gauges, **added}


def values(found: Values, metric: Metric) -> Mapping[tuple[str, ...], float]:
    """Return the values of one metric by its labels."""
    return found.get(metric, {})


def test_a_first_pass() -> None:
    """It counts the instances that it registered."""
    found = of(world(1, 2).run())
    assert values(found, INSTANCES) == {("RATING", "UP"): 2}
    assert values(found, ACTIONS) == {("Register", "Done"): 2}
    assert values(found, PASSES) == {("OK",): 1}
    assert values(found, SYNCERS)["Ready", "True"] == 1
    assert values(found, UNKNOWN) == {("Kubernetes",): 0, ("Eureka",): 0}
    assert (values(found, AT_RISK), values(found, EXIT_CODE)) == ({(): 0}, {(): 0})
    assert values(found, LAST_PASS) == {(): 5.0}
    assert values(found, LAST_GOOD) == {("all",): 5.0}


def test_the_metrics_count_changes_and_cancels() -> None:
    """They show the state after the pass."""
    one = world(1, 2, 3, 4)
    one.run()
    one.cluster.apply(
        piece(endpoint(1), endpoint(2, ready=False), endpoint(3), endpoint(4, ready=False))
    )
    found = of(one.run())
    assert values(found, INSTANCES) == {("RATING", "UP"): 2, ("RATING", "DOWN"): 2}
    one.cluster.apply(piece(endpoint(1), endpoint(2, ready=False), endpoint(3)))
    found = of(one.run())
    assert values(found, INSTANCES) == {("RATING", "UP"): 2, ("RATING", "DOWN"): 1}
    assert values(found, ACTIONS) == {("Renew", "Done"): 3, ("Cancel", "Done"): 1}


def test_a_first_registration_that_fails_counts_as_no_instance() -> None:
    """It counts as a failed action."""
    one = world(1)
    one.run()
    (key,) = one.registry.held
    one.registry.held.clear()
    one.registry.refuse_register = {key: RegistryRejected("no")}
    found = of(one.run(), ExitCode.INCOMPLETE)
    assert values(found, INSTANCES) == {}
    assert values(found, ACTIONS) == {("Register", "Failed"): 1}


def test_renewals_between_two_passes_are_renewals() -> None:
    """Only a daemon makes them."""
    found = of(replace(world().run(), renewed_between=7))
    assert values(found, ACTIONS) == {("Renew", "Done"): 7}


def test_a_renewal_that_fails_is_a_lease_at_risk() -> None:
    """The instance is still registered."""
    one = world(1)
    one.run()
    one.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    one.registry.refuse = {key: RegistryUnavailable("no answer") for key in one.registry.held}
    found = of(one.run(), ExitCode.EUREKA_UNREAD)
    assert values(found, AT_RISK) == {(): 1}
    assert values(found, UNKNOWN) == {("Kubernetes",): 0, ("Eureka",): 1}


def test_metrics_of_unread_sources_have_no_value() -> None:
    """An outage must not look like an empty registry. A pass that fails is not a good pass."""
    one = world(1)
    one.run()
    one.cluster.uid = Unknown(cause=Cause.DENIED, message="no")
    found = of(one.run(), ExitCode.KUBERNETES_DENIED)
    assert (values(found, INSTANCES), values(found, SYNCERS), values(found, LAST_GOOD)) == (
        {},
        {},
        {},
    )
    assert found.keys().isdisjoint({INSTANCES, SYNCERS, HELD, LAST_GOOD})
    assert values(found, EXIT_CODE) == {(): 11}
    assert values(found, UNKNOWN)["Kubernetes",] > 0


def test_held_removals_are_counted_by_reason() -> None:
    """A pass that holds removals is a good pass."""
    one = world(1)
    one.run()
    one.cluster.apply(piece())
    found = of(one.run(), ExitCode.REMOVAL_HELD)
    assert +Counter(values(found, HELD)) == {("AwaitingConfirmation",): 1}
    assert values(found, LAST_GOOD) == {("all",): 5.0}


def test_the_metric_of_held_removals_returns_to_zero() -> None:
    """Without a value, the Pushgateway would keep the last one, and the alert would never end."""
    one = world(1)
    one.run()
    one.cluster.apply(piece())
    held = values(of(one.run(), ExitCode.REMOVAL_HELD), HELD)
    one.later(60)
    found = values(of(one.run()), HELD)
    assert found.keys() == held.keys()
    assert set(found.values()) == {0}


@pytest.mark.parametrize("not_ready", ["Down", "Cancel"])
def test_an_app_that_flaps_is_counted_each_time(not_ready: str) -> None:
    """Under `notReady: Cancel` no instance is ever DOWN. A pod that starts, terminates or is gone
    counts for nothing: a rollout has those."""
    found = world(1, 2)
    found.cluster.apply(syncer(notReady=not_ready))
    counts = []
    for pods in (
        (endpoint(1), endpoint(2)),
        (endpoint(1), endpoint(2, ready=False)),
        (endpoint(1), endpoint(2, ready=False)),
        (endpoint(1), endpoint(2)),
        (endpoint(1), endpoint(2, ready=False)),
        (endpoint(1), endpoint(2), endpoint(3, ready=False)),
        (endpoint(1), endpoint(2, ready=False, terminating=True), endpoint(3)),
        (endpoint(1),),
    ):
        found.later(30)
        found.cluster.apply(piece(*pods))
        counts.append(values(of(found.run()), UNREADY))
    lost = [count["RATING",] for count in counts]
    assert lost == [0, 1, 0, 0, 1, 0, 0, 0]


def test_the_last_instance_of_an_app_that_flaps_is_counted() -> None:
    """Its pass is the one that confirms the removal. The app has a series of its own all the
    time."""
    found = world(1)
    found.cluster.apply(syncer(notReady="Cancel"))
    found.run()
    found.cluster.apply(piece(endpoint(1, ready=False)))
    assert values(of(found.run()), UNREADY) == {("RATING",): 0}
    found.later(30)
    assert values(of(found.run()), UNREADY) == {("RATING",): 1}


def test_a_dry_run_is_no_good_pass() -> None:
    """A dry run renews nothing. It must not end the alert that renewals are missing."""
    one = world(1)
    one.run()
    found = of(one.run(dry_run=True))
    assert found.keys().isdisjoint({LAST_GOOD, AT_RISK})
    assert values(found, INSTANCES) == {("RATING", "UP"): 1}


def test_the_scope_is_the_options_that_give_it() -> None:
    """A person can copy them into a command."""
    assert scope_text(Scope()) == "all"
    assert scope_text(Scope(namespaces=frozenset({"shop"}))) == "-n shop"


def bad(report: PassReport) -> dict[tuple[str, ...], float]:
    """Return what is wrong: by name, condition and reason."""
    shown: dict[tuple[str, ...], float] = {}
    for labels, value in values(of(report), BAD).items():
        kind, *rest = labels
        assert kind == "EurekaSyncer"
        if value:
            shown[tuple(rest)] = value
    return shown


def test_a_syncer_that_is_not_ready_is_named() -> None:
    """An alert goes to the team of its namespace. What is well has no series, and a zero says that
    nothing is wrong: a Pushgateway keeps the last values of a metric without any."""
    one = world(1)
    report = one.run()
    assert bad(report) == {}
    zeros = values(of(report), BAD)
    assert zeros == {
        ("EurekaSyncer", "", "", type_, ""): 0 for type_ in ("Ready", "Conflict", "RemovalHeld")
    }
    one.cluster.apply(syncer("cart", selector={"app": "cart"}))
    assert bad(one.run()) == {("rating", "cart", "Ready", "NoMatchingService"): 1}


def test_a_conflict_is_named_with_its_syncer() -> None:
    """Its alert is another one than that of a syncer that waits for its pods."""
    one = world(1)
    one.run()
    one.cluster.apply(syncer("twin", vipAddress="other", created=2000))
    assert bad(one.run()) == {
        ("rating", "twin", "Ready", "Conflict"): 1,
        ("rating", "twin", "Conflict", "Conflict"): 1,
    }


def test_the_worst_are_named_and_the_others_counted() -> None:
    """What somebody asked for comes last, so that it never hides a fault. The names do not vary
    from pass to pass."""
    one = FakeWorld()
    for number in range(MOST_NAMED + 2):
        one.cluster.apply(syncer(f"s{number:03}", selector={"app": f"app{number}"}))
    one.cluster.apply(service(), piece(endpoint(1)))
    for name in ("a", "b"):
        one.cluster.apply(syncer(name, limit=0))
    shown = bad(one.run())
    named = [f"s{number:03}" for number in range(MOST_NAMED)]
    assert [name for _, name, _, _ in shown if name] == named
    unnamed = {labels: value for labels, value in shown.items() if not labels[1]}
    assert unnamed == {
        ("", "", "Ready", "NoMatchingService"): 2,
        ("", "", "Ready", "LimitZero"): 2,
    }
    assert bad(one.run()) == shown
