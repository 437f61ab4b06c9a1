"""The state of all syncers: a row each, the broken first. The pass counts those in order, the others are explained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum

from eurekube_sync.controller.exit_codes import ExitCode, of_unknown
from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Serving, every
from eurekube_sync.desired.spec import class_of
from eurekube_sync.explain.chain import explain
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Why
from eurekube_sync.explain.missing import unselected
from eurekube_sync.explain.registry import heartbeat_link, is_silent
from eurekube_sync.explain.serving import refused_by_its_installation
from eurekube_sync.explain.subject import Subject, named_app
from eurekube_sync.explain.what import OfSyncer
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerObject, SyncerRef, SyncerStatus
from eurekube_sync.model.sources import Complete, Server, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.kubernetes import unread


class State(IntEnum):
    """The order of the rows."""

    BROKEN = 0
    """Nothing of it is registered as it should be."""
    PARTLY = 1
    UNKNOWN = 2
    IN_SYNC = 3


_STATES = {
    Outcome.NOT_REGISTERED: State.BROKEN,
    Outcome.PARTLY: State.PARTLY,
    Outcome.UNKNOWN: State.UNKNOWN,
    Outcome.REGISTERED: State.IN_SYNC,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One syncer."""

    syncer: SyncerRef
    state: State
    reason: str
    """A machine word, as in conditions; `InSync` where nothing is wrong."""
    why: str = ""
    apps: tuple[str, ...] = ()
    named: str = ""
    """The app that its spec names, served or not; empty where the Services name it."""
    up: int | None = None
    """None where nobody could tell."""
    of: int = 0
    since: float | None = None
    """Unix seconds of the last change of its condition Ready."""
    conditions: tuple[Condition, ...] = ()

    @property
    def ready(self) -> str:
        """`UP/desired`."""
        return f"{'?' if self.up is None else self.up}/{self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All rows, and what holds for the whole."""

    rows: tuple[Row, ...]
    """The broken first."""
    owner: str
    cluster: str
    """UID; empty where it may not be read."""
    at: float
    eureka: Unknown | None
    """Why Eureka could not be looked at; None where it was."""
    list_seconds: float
    last_pass: Link
    """What the heartbeat says."""
    oldest_lease: float | None
    """Seconds since the renewal that is longest ago, of all instances of these syncers; None for none, or unknown."""
    unread: tuple[tuple[str, Unknown], ...]
    """What of Kubernetes could not be looked at."""
    absent: tuple[str, ...] = ()
    """Namespaces that were asked for and do not exist."""
    unselected: tuple[str, ...]
    """Services of the named namespaces that no syncer selects, as `namespace/name`."""
    narrowed: str
    held: int
    conflicts: int
    left_out: int = 0
    """Rows that nobody asked for."""

    @property
    def unlisted(self) -> Unknown | None:
        """Why there may be more syncers than the rows; None where all were listed."""
        return next((source for name, source in self.unread if name.startswith("EurekaSyncers")), None)

    def count(self, state: State) -> int:
        """How many rows are in it."""
        return sum(row.state is state for row in self.rows)


def overview(look: Look) -> Overview:
    """What a look comes to. `look` has the Pods of the namespaces whose syncers need a word."""
    report = look.report
    rows = [*_served(report, look), *_others(report, look)]
    blocked = [one for one in report.plan.blocked if one.conflict]
    return Overview(
        rows=tuple(sorted(rows, key=lambda row: (row.state, row.syncer))),
        owner=look.owner,
        cluster=look.identity.data if isinstance(look.identity, Complete) else "",
        at=look.at,
        eureka=look.listed if isinstance(look.listed, Unknown) else None,
        list_seconds=look.list_seconds,
        last_pass=heartbeat_link(look, alone=False),
        oldest_lease=_oldest(rows, look),
        unread=tuple(unread(report.view)),
        absent=report.absent,
        unselected=tuple(
            f"{name}/{one}" for name in sorted(look.asked.namespaces or ()) for one in unselected(look, name)
        ),
        narrowed=look.narrowed,
        held=len(report.held.removals) if report.held else 0,
        conflicts=len(blocked),
    )


def in_need(look: Look) -> frozenset[str]:
    """Namespaces of syncers that are not in order, so that their Pods are worth a look."""
    claims = look.report.desired.claims.items() if look.report.desired else ()
    return frozenset(
        ref.namespace for ref, claim in claims if not _in_order(claim, look.report.all_statuses.get(ref), look)
    )


def _served(report: PassReport, look: Look) -> Iterator[Row]:
    for ref, claim in report.desired.claims.items() if report.desired else ():
        standing = report.all_statuses.get(ref)
        renewed = isinstance(look.listed, Complete) and not any(is_silent(one, look.at) for one in look.marked(ref))
        if standing is not None and _in_order(claim, standing, look) and renewed:
            yield _row(claim.syncer, State.IN_SYNC, _reason(standing), standing=standing)
            continue
        found = explain(Subject(what=OfSyncer(ref), report=report, claim=claim), look)
        yield _explained(claim.syncer, found, standing)


def _in_order(claim: Claim, standing: SyncerStatus | None, look: Look) -> bool:
    """Whether all that the pass wants is UP, by its own count, and nothing waits."""
    if standing is None or not isinstance(claim, Serving) or claim.unready or claim.incomplete:
        return False
    if refused_by_its_installation(claim.syncer, look) is not None:
        return False
    conditions = {one.type: one.status for one in standing.conditions}
    good = conditions.get("Ready") is ConditionStatus.TRUE and conditions.get("Synced") is ConditionStatus.TRUE
    return good and standing.up >= standing.desired > 0


def _explained(syncer: SyncerObject, found: Explanation, standing: SyncerStatus | None) -> Row:
    state = _STATES[found.outcome]
    why = found.broken.text if found.broken else ""
    if found.outcome is Outcome.UNKNOWN:
        why = next((link.text for link in found.links if link.mark is Mark.UNKNOWN), "")
    if found.broken and found.broken.details and found.broken.reason not in _WHOLE:
        why = f"{why}; {found.broken.details[0]}"
    return Row(
        syncer=syncer.ref,
        state=state,
        reason=found.reason or (Why.NOT_LOOKED_AT if state is State.UNKNOWN else _reason(standing)),
        why=why or _note(found),
        apps=found.apps,
        named=named_app(syncer),
        up=found.up,
        of=found.of,
        since=None if state is State.BROKEN and _was_ready(syncer) else _since(syncer),
        conditions=standing.conditions if standing else (),
    )


def _note(found: Explanation) -> str:
    """What a person may want to know of one that is registered, such as that it is suspended."""
    parts = ("suspend", "limit", "drain", "policy")
    return next((one.text for one in found.links if one.mark is Mark.NOTE and one.part in parts), "")


def _reason(standing: SyncerStatus | None) -> str:
    ready = standing.condition("Ready") if standing else None
    return ready.reason if ready else "InSync"


_WHOLE = frozenset({"NotReady", "DuplicateRegistration", "OutOfService", "Expired"})
"""Reasons whose sentence needs no more beside it."""


def _was_ready(syncer: SyncerObject) -> bool:
    """Whether the last pass found it ready, so that its condition does not say since when it is broken."""
    ready = syncer.status.condition("Ready") if syncer.status else None
    return ready is not None and ready.status is ConditionStatus.TRUE


def _since(syncer: SyncerObject) -> float | None:
    ready = syncer.status.condition("Ready") if syncer.status else None
    return ready.last_transition if ready else None


def _row(syncer: SyncerObject, state: State, reason: str, *, standing: SyncerStatus, why: str = "") -> Row:
    return Row(
        syncer=syncer.ref,
        state=state,
        reason=reason,
        why=why,
        apps=standing.apps,
        named=named_app(syncer),
        up=standing.up,
        of=standing.desired,
        since=_since(syncer),
        conditions=standing.conditions,
    )


def _others(report: PassReport, look: Look) -> Iterator[Row]:
    """Syncers that were listed and are out of scope: their own status tells whether somebody serves them."""
    claims = report.desired.claims if report.desired else {}
    for syncer in every(report.view.syncers) if report.view else ():
        if syncer.ref in claims:
            continue
        status = syncer.status
        fresh = status is not None and status.observed_generation >= syncer.generation
        named = f"class {class_of(syncer)}" if class_of(syncer) else "it is out of the scope given here"
        if status is not None and fresh:
            good = (ready := status.condition("Ready")) is not None and ready.status is ConditionStatus.TRUE
            why = "" if good or ready is None else ready.message
            state = State.IN_SYNC if good else State.BROKEN
            yield _row(syncer, state, _reason(status), standing=status, why=why)
        else:
            yield Row(
                syncer=syncer.ref,
                state=State.BROKEN,
                reason="NoInstallation",
                why=f"{named}: no installation serves it",
                named=named_app(syncer),
                since=syncer.created,
            )


def _oldest(rows: list[Row], look: Look) -> float | None:
    ages = [
        look.at - max(one.renewed, one.last_dirty_timestamp / 1000)
        for row in rows
        for one in look.marked(row.syncer)
        if one.last_renewal and one.status is not InstanceStatus.UNKNOWN
    ]
    return max(ages) if ages else None


def chosen(found: Overview, *, app: str | None = None, condition: str | None = None) -> Overview:
    """The same with the rows of an app, and of a condition or reason: `RemovalHeld`, `Ready=False`, `NotReady`."""
    rows = tuple(
        row
        for row in found.rows
        if (app is None or app.upper() in (*row.apps, row.named)) and (condition is None or _has(row, condition))
    )
    return replace(found, rows=rows, left_out=len(found.rows) - len(rows))


def _has(row: Row, condition: str) -> bool:
    type_, _, value = condition.partition("=")
    if any(one.type == type_ and one.status == (value or ConditionStatus.TRUE) for one in row.conditions):
        return True
    return row.reason == condition or any(one.reason == condition for one in row.conditions)


def code_of_overview(found: Overview) -> ExitCode:
    """0 only where all is in sync, and that was seen. Else what is broken; then what could not be looked at."""
    if found.count(State.BROKEN) or found.count(State.PARTLY) or found.absent:
        return ExitCode.NOT_REGISTERED
    if found.eureka is not None and found.count(State.UNKNOWN):
        return of_unknown(Server.EUREKA, found.eureka)
    if found.unlisted is not None:
        return of_unknown(Server.KUBERNETES, found.unlisted)
    if found.unread and (found.count(State.UNKNOWN) or not found.rows):
        return of_unknown(Server.KUBERNETES, found.unread[0][1])
    return ExitCode.OK
