"""What `explain` says of held removals: those of the syncer in question, for their own reason, with
the command."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.explain.links import Explanation, Link, Part
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerObject, SyncerStatus
from eurekube_sync.model.sources import Cause, Listed, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, text
from tests.unit.worlds.build import NS, endpoint, nowhere, piece, service, syncer

FEW = BrakeLimits(loss_percent=10, loss_floor=0, app_loss_floor=0, apps_percent=100, apps_floor=100)
"""With these, the loss of one instance in ten is held."""


def _brake(found: Explanation) -> Link:
    """The link of the brake."""
    (link,) = (link for link in found.links if link.part is Part.BRAKE)
    return link


def _two_apps(pods: int = 3) -> Asked:
    """Two syncers with this many pods each: the second one's are 10.0.0.11 and so on."""
    asked = Asked(*(endpoint(number) for number in range(1, pods + 1)))
    asked.fake.brake = FEW
    labels = {"app": "pay"}
    asked.add(syncer("pay", created=asked.fake.clock.now(), selector=labels))
    asked.fake.cluster.services.append(service("pay", labels=labels))
    asked.fake.cluster.slices.append(
        piece(*(endpoint(10 + number) for number in range(1, pods + 1)), service="pay")
    )
    asked.fake.run()
    return asked


def _unready(asked: Asked, *numbers: int) -> None:
    """Let these pods be not ready."""
    slices = []
    for one in asked.fake.cluster.slices:
        ends = (
            replace(end, ready=int(end.address.rsplit(".", 1)[1]) not in numbers)
            for end in one.endpoints
        )
        slices.append(replace(one, endpoints=tuple(ends)))
    asked.fake.cluster.slices = slices


def test_only_the_removals_of_the_syncer_are_counted_and_shown() -> None:
    """Both syncers would lose instances."""
    asked = _two_apps()
    _unready(asked, 1, 2, 11)
    found = asked.why()
    assert _brake(found).text.startswith("2 of its removals are held: ")
    assert _brake(found).cause == "2 removals are held by the brake"
    assert [detail.split(": ")[0] for detail in _brake(found).details[1:]] == [
        "10.0.0.1:8080",
        "10.0.0.2:8080",
    ]
    others = asked.why(f"{NS}/pay")
    assert _brake(others).text.startswith("1 of its removals is held: ")
    assert [detail.split(": ")[0] for detail in _brake(others).details[1:]] == ["10.0.0.11:8080"]


def test_a_question_about_one_pod_shows_its_removal_alone() -> None:
    """Another pod of the syncer has no removal at all."""
    asked = _two_apps()
    _unready(asked, 1, 2)
    found = asked.why(f"pod/{NS}/rating-2")
    assert _brake(found).text.startswith("1 of its removals is held: ")
    assert "10.0.0.1:8080" not in text(found)
    assert not [link for link in asked.why(f"pod/{NS}/rating-3").links if link.part is Part.BRAKE]


def test_each_syncer_has_the_reason_of_its_own_hold() -> None:
    """One loses the last instance of its app, and the other too much. Together they do not lose too
    much."""
    asked = _two_apps()
    asked.fake.brake = BrakeLimits(loss_floor=100)
    asked.fake.cluster.slices = [piece(endpoint(1)), *asked.fake.cluster.slices[1:]]
    asked.fake.cluster.ended |= {"uid-of-rating-2", "uid-of-rating-3"}
    asked.fake.run()
    asked.fake.brake = BrakeLimits(loss_floor=100, app_loss_floor=1)
    _unready(asked, 1, 11, 12)
    reasons = {what: _brake(asked.why(what)).reason for what in (f"{NS}/rating", f"{NS}/pay")}
    assert reasons == {f"{NS}/rating": "AwaitingConfirmation", f"{NS}/pay": "TooManyRemovals"}


def test_the_command_that_releases_them_has_the_options_of_this_scope() -> None:
    """Without them it would be another plan, or another installation's."""
    asked = _two_apps()
    asked.in_scope(namespaces=frozenset({NS}))
    _unready(asked, 1, 2, 11)
    found = asked.why()
    held = asked.look(f"{NS}/rating").report.held
    assert held is not None
    assert (
        found.fix
        == f"if all held removals are right, eurekube-sync run -n {NS} --approve {held.plan_id}"
    )


def test_five_removals_are_shown() -> None:
    """The first line says how many there are, the second what their pods do."""
    asked = _two_apps(pods=7)
    _unready(asked, *range(1, 7))
    assert _brake(asked.why()).text.startswith("6 of its removals are held: ")
    _, *removals = _brake(asked.why()).details
    assert len(removals) == 5


@pytest.mark.parametrize("status", list(ConditionStatus))
def test_where_eureka_cannot_be_read_the_last_pass_has_the_word(status: ConditionStatus) -> None:
    """The look's own brake could weigh nothing. A condition that is not True is no hold."""
    asked = _two_apps()
    before = Condition(
        type="RemovalHeld",
        status=status,
        reason="TooManyRemovals",
        message="2 removals of this syncer are held: 3 of 6",
        observed_generation=1,
        last_transition=0,
    )
    asked.add(
        replace(asked.syncer, status=SyncerStatus(observed_generation=1, conditions=(before,)))
    )
    _unready(asked, 1)
    asked.fake.registry.unreadable = Unknown(cause=Cause.DENIED, message="403: you may not")
    shown = [link for link in asked.why().links if link.part is Part.BRAKE]
    if status is not ConditionStatus.TRUE:
        assert shown == []
        return
    (link,) = shown
    assert link.text == "the last pass said: 2 removals of this syncer are held: 3 of 6"
    assert link.fix == "if all held removals are right, let the operator release them"


def test_who_may_read_one_namespace_sees_what_the_last_pass_said() -> None:
    """The brake weighs all namespaces, so a look at one of them does not judge it."""
    asked = _two_apps()
    _unready(asked, 1, 2)
    cluster, denied = asked.fake.cluster, Unknown(cause=Cause.DENIED, message="403: you may not")
    in_namespaces = cluster.list_syncers

    def list_syncers(namespaces: Sequence[str] | None) -> Listed[SyncerObject]:
        return nowhere(denied) if namespaces is None else in_namespaces(namespaces)

    cluster.list_syncers = list_syncers  # type: ignore[method-assign]
    found = asked.look(f"{NS}/rating")
    assert (found.narrowed, found.report.held is not None) == (NS, True)
    assert not [link for link in asked.why().links if link.part is Part.BRAKE]
