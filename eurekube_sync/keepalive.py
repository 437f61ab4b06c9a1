"""One pass without a cluster, step by step: what bears our owner's name is renewed, and nothing is withdrawn.

    list Eureka -> snapshot, if there is one -> read again what is missing -> plan -> renew, bring back

Only a snapshot can add anything: what stood UP in it, and an uncached read shows absent. A snapshot that is refused
stops no renewal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from eurekube_sync.actions import Action, Register, Renew
from eurekube_sync.apply import Applier
from eurekube_sync.deadline import Deadline, TimeLimit
from eurekube_sync.errors import ConfigurationError
from eurekube_sync.model import Complete, Instance, InstanceKey, InstanceStatus, ObservedInstance, SyncerRef, Unknown
from eurekube_sync.observed import Observed, held_by_owner, is_ours, observe
from eurekube_sync.one_pass import PassReport
from eurekube_sync.outcome import Outcome, Outcomes, Result
from eurekube_sync.ownership import CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.plan import Blocked, Obstacle, Plan, plan_renewals, sorted_plan
from eurekube_sync.ports import Clock, Registry, Workers
from eurekube_sync.renewals import RenewalLedger
from eurekube_sync.scope import Scope
from eurekube_sync.snapshot import Snapshot, check

LoadSnapshot = Callable[[], Snapshot]
"""Reads the snapshot as it is now; raises ConfigurationError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryWorld:
    """All that such a pass touches."""

    registry: Registry
    clock: Clock
    workers: Workers
    renewals: RenewalLedger
    time_limit: TimeLimit
    """The one that the adapter keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepaliveSettings:
    """Whose instances, and how. Times in seconds."""

    owner: str
    cluster: str | None = None
    """None: of every cluster that has the owner's name."""
    scope: Scope = field(default_factory=Scope)
    """Namespaces and shard; labels and classes are the cluster's to tell."""
    snapshot_max_age: float = 86400
    dry_run: bool = False
    deadline: float = 120


def keepalive(world: RegistryWorld, settings: KeepaliveSettings, load: LoadSnapshot | None = None) -> PassReport:
    """Renews all that is ours, and brings back what the snapshot holds and Eureka has lost."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    asked, listed = world.clock.now(), world.registry.list_instances()
    snapshot, refused = _load(world, settings, load)
    ownership = snapshot.ownership if snapshot else Ownership(owner=settings.owner, cluster=settings.cluster or "")

    def ours(instance: ObservedInstance) -> bool:
        return is_ours(instance, ownership, settings.scope)

    applier = Applier(world.registry, world.clock, world.workers, world.renewals, ours, deadline)

    registry = (
        listed
        if isinstance(listed, Unknown)
        else Complete(data=observe(listed, ownership, settings.scope, asked=asked))
    )
    clashes: tuple[str, ...] = ()
    bearing: list[ObservedInstance] = []
    if isinstance(registry, Unknown):
        plan = _plan_blind(snapshot)
    else:
        assert isinstance(listed, Complete)
        bearing = [one for one in held_by_owner(listed, settings.owner, settings.scope) if _chosen(one, settings)]
        if snapshot is not None and settings.cluster is None:
            clashes = registry.data.clashes  # whose snapshot is it? Until --cluster says so, nothing is brought back
        lost = {} if snapshot is None or clashes else _missing(snapshot, registry.data)
        registry = Complete(data=registry.data.refreshed(applier.read(lost)))
        if _absent(lost, registry.data):
            snapshot, refused = _load(world, settings, load)
        plan = _plan(bearing, snapshot if not clashes else None, lost, registry.data, world.clock.now())

    def still_up() -> Mapping[InstanceKey, Instance]:
        now, _ = _load(world, settings, load)
        return now.up if now else {}

    outcomes = Outcomes(by_key={})
    if not settings.dry_run:
        plan, outcomes = _carry_out(applier, plan, bearing, still_up)
    return PassReport(
        dry_run=settings.dry_run,
        at=world.clock.now(),
        plan=plan,
        registry=registry,
        view=None,
        clashes=clashes,
        snapshot_refused=refused,
        outcomes=outcomes,
        batching=world.registry.batching(),
        cut_short=deadline.cut_short,
    )


def _load(
    world: RegistryWorld, settings: KeepaliveSettings, load: LoadSnapshot | None
) -> tuple[Snapshot | None, str | None]:
    """The snapshot, or why it is refused."""
    if load is None:
        return None, None
    try:
        snapshot = load()
        check(
            snapshot,
            owner=settings.owner,
            cluster=settings.cluster,
            now=world.clock.now(),
            max_age=settings.snapshot_max_age,
        )
    except ConfigurationError as error:
        return None, str(error)
    covered = {key: one for key, one in snapshot.instances.items() if settings.scope.covers(_syncer(one))}
    return replace(snapshot, instances=covered), None


def _chosen(instance: ObservedInstance, settings: KeepaliveSettings) -> bool:
    return settings.cluster is None or instance.metadata.get(CLUSTER) == settings.cluster


def _missing(snapshot: Snapshot, observed: Observed) -> dict[InstanceKey, Instance]:
    """What stood UP, and is not in the list as ours."""
    return {key: instance for key, instance in snapshot.up.items() if key not in observed.ours}


def _absent(lost: Mapping[InstanceKey, Instance], observed: Observed) -> bool:
    known = (observed.ours, observed.others, observed.unread)
    return any(not any(key in there for there in known) for key in lost)


def _plan(
    ours: list[ObservedInstance],
    snapshot: Snapshot | None,
    lost: Mapping[InstanceKey, Instance],
    observed: Observed,
    now: float,
) -> Plan:
    """Renewals of all that stands; registrations of what an uncached read did not find."""
    up = snapshot.up if snapshot else {}
    actions: list[Action] = []
    for action in plan_renewals(ours, "it bears our owner's name", now=now).of(Renew):
        # Something that is DOWN by now is not brought back UP.
        heal = up.get(action.key) if action.status is InstanceStatus.UP else None
        actions.append(replace(action, heal=heal))
    blocked: list[Blocked] = []
    for key in lost:
        instance = up.get(key)
        if instance is None:
            continue
        syncer = _syncer(instance)
        if key in observed.unread:
            why = observed.unread[key].why
            blocked.append(Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.UNREAD))
        elif key in observed.others:
            why = f"{_holder(observed.others[key])} stands under our id"
            blocked.append(Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.TAKEN, other=key))
        elif key in observed.ours:
            why = "it stands, and the list does not show it yet"
            actions.append(Renew(key=key, syncer=syncer, why=why, status=observed.ours[key].status))
        else:
            assert snapshot is not None  # `up` is its
            why = f"it stood at {snapshot.time}, and Eureka has lost it"
            actions.append(Register(instance=instance, syncer=syncer, why=why))
    return sorted_plan(actions, blocked)


def _plan_blind(snapshot: Snapshot | None) -> Plan:
    """While the registry cannot be read: renew what the snapshot holds, register what stood UP on a 404."""
    return sorted_plan(
        Renew(
            key=key,
            syncer=_syncer(instance),
            why=f"the registry could not be read; it stood at {snapshot.time}",
            heal=instance if instance.status is InstanceStatus.UP else None,
        )
        for key, instance in (snapshot.instances if snapshot else {}).items()
        if snapshot is not None
    )


def _carry_out(
    applier: Applier,
    plan: Plan,
    listed: Iterable[ObservedInstance],
    still_up: Callable[[], Mapping[InstanceKey, Instance]],
) -> tuple[Plan, Outcomes]:
    """Renewals first, then what is to be brought back; and the plan without what is not any more.

    `run` may have taken something away since the snapshot was read: what it takes out of Eureka, it takes out of the
    snapshot before. So that is read again when all else is done.
    """
    done: list[Outcome] = applier.renew(plan.of(Renew), listed)
    lapsed, lacking = list(_lapsed(done)), [outcome for outcome in done if outcome.lacking]
    if not (lapsed or lacking or plan.of(Register)):
        return plan, Outcomes.of(done)
    up = still_up()
    plan = replace(plan, actions=tuple(a for a in plan.actions if not isinstance(a, Register) or a.key in up))
    applied = applier.change([*plan.of(Register), *(action for action in lapsed if action.key in up)], {})
    return plan, Outcomes.of(
        [*done, *applied, *applier.level([outcome for outcome in lacking if outcome.action.key in up], {})]
    )


def _lapsed(done: list[Outcome]) -> Iterator[Renew]:
    for outcome in done:
        if outcome.result is Result.GONE and isinstance(outcome.action, Renew) and outcome.action.heal:
            yield outcome.action


def _syncer(instance: Instance) -> SyncerRef:
    syncer = syncer_of(instance)
    assert syncer is not None  # a snapshot holds none without
    return syncer


def _holder(instance: ObservedInstance) -> str:
    owner = instance.metadata.get(OWNER)
    return f"an instance of owner {owner}" if owner else "an instance without our mark"
