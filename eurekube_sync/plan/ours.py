"""The action for an instance of ours that is registered: renew, update or cancel, with the reason.

An update keeps what others set: an OUT_OF_SERVICE or another override, and metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import assert_never

from eurekube_sync.desired.catalog import DRAINED, same
from eurekube_sync.desired.claims import (
    Deleting,
    Desired,
    Leaving,
    NotServed,
    OverLimit,
    Serving,
    Taken,
    Wanted,
)
from eurekube_sync.desired.conduct import LIMIT
from eurekube_sync.desired.heirs import is_put_out_and_left, kept_for
from eurekube_sync.model.actions import Action, Cancel, Change, Grounds, Renew, Update
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.foreign_text import HIDDEN, sounds_secret
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLASS, our_keys, pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.sources import Complete, Proof, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.kubernetes import pod_gone
from eurekube_sync.plan.value import Blocked, Plan, sorted_plan


def for_ours(
    key: InstanceKey, desired: Desired, observed: Observed, earlier: EarlierPlan | None = None
) -> Action:
    """Return the action that the instance's syncer asks for; a renewal if its uncached read
    failed."""
    instance = observed.ours[key]
    if key in observed.unread:
        return renewal(
            instance, f"the instance could not be read again: {observed.unread[key].why}"
        )
    claim = desired.server_of(key)
    if claim is not None and (judge := _judge_of(instance, claim, desired)):
        verdict = judge.verdicts[key]
        if isinstance(verdict, Taken):
            return _for_wanted(judge, verdict.wanted, instance)
        return _for_left_over(instance, judge, desired)
    if claim is not None:
        wanted = claim.wanted_at(key)
        assert wanted is not None  # `server_of` gives the claim that wants the key
        if earlier and (
            known := earlier.renewal(desired.wanted_by[key], wanted, instance.instance)
        ):
            return known
        action = _for_wanted(claim, wanted, instance)
        if earlier and isinstance(action, Renew):
            earlier.renewals[key] = (wanted, instance.instance, action)
        return action
    action = _for_unwanted(instance, desired)
    if isinstance(action, Cancel) and observed.ownership.is_former(instance):
        successor = observed.ownership.key_of(instance)
        if successor in desired.wanted_by:
            return replace(action, why=f"the id of its endpoint is {successor.id} now")
    return action


def _judge_of(instance: ObservedInstance, wanting: Serving, desired: Desired) -> Serving | None:
    """Return the syncer in an instance's mark, if it is served and says what becomes of the
    endpoint, while the one that wants the instance is suspended: that one would change nothing. It
    keeps what another syncer deleted, detached by limit 0, or has no endpoint for any more."""
    marked = syncer_of(instance)
    if not wanting.conduct.suspend or marked is None or marked == wanting.syncer.ref:
        return None
    claim = desired.claims.get(marked)
    if not isinstance(claim, Serving) or claim.conduct.suspend or claim.conduct.claims_nothing:
        return None
    verdict = claim.verdicts.get(instance.key)
    return claim if isinstance(verdict, Taken | Leaving) else None


def _for_wanted(claim: Serving, wanted: Wanted, observed: ObservedInstance) -> Action:
    syncer = claim.syncer.ref
    changes = differences(wanted.instance, observed)
    if not changes:
        return Renew(
            key=observed.key,
            syncer=syncer,
            why=wanted.why,
            if_gone=wanted.if_gone,
            status=observed.status,
        )
    return Update(
        instance=wanted.instance,
        syncer=syncer,
        why=wanted.why,
        changes=changes,
        was=observed.status,
        stored_timestamp=observed.last_dirty_timestamp,
        proof=claim.proof,
        grounds=Grounds.DRAINED if wanted.drained else Grounds.ABSENCE,
        override=observed.instance.override,
    )


def _for_unwanted(instance: ObservedInstance, desired: Desired) -> Action:
    syncer = syncer_of(instance)
    assert syncer is not None  # `Observed.ours` holds none without
    claim, listed = desired.claims.get(syncer), desired.syncers.of(syncer.namespace)
    if isinstance(claim, NotServed) and claim.source is not None:
        return renewal(instance, f"not served: {claim.reason}")
    if claim is None and isinstance(listed, Unknown):
        return renewal(instance, "its syncers could not be listed")
    if proof := _replaced(instance, desired):
        return cancel(instance, "another pod has its address and port", Grounds.REPLACED, proof)
    awaits = isinstance(claim, NotServed | Serving) and claim.keeps_until_pod_gone(instance)
    if awaits and (proof := pod_gone(instance, desired.living_pods)):
        return cancel(instance, "its pod is gone", Grounds.POD_GONE, proof)
    if (heir := kept_for(instance, desired)) and not pod_gone(instance, desired.living_pods):
        return renewal(instance, heir)
    match claim:
        case Deleting():
            return cancel(
                instance, "its syncer is being deleted", Grounds.SYNCER_DELETED, claim.proof
            )
        case NotServed():
            return renewal(instance, f"not served: {claim.reason}")
        case Serving():
            return _for_left_over(instance, claim, desired)
        case None:
            assert isinstance(listed, Complete)  # else it was renewed above
            why = f"there is no syncer {syncer}"
            if _written_before(
                instance, desired.crd_installed
            ):  # the syncer may be restored, and want it
                return _unless_put_out(instance, why, Grounds.SWEPT, listed.proof)
            return cancel(instance, why, Grounds.ORPHANED, listed.proof)
        case _:  # pragma: no cover
            assert_never(claim)


def _written_before(instance: ObservedInstance, moment: float) -> bool:
    """Say whether the instance may have been written before a moment in Unix seconds. Our clock and
    Eureka's both tell when; the earlier counts, because a clock that was wrong at that time may be
    right now."""
    written = instance.last_dirty_timestamp
    if instance.registered:
        written = min(written, instance.registered)
    return written < moment * 1000


def _for_left_over(instance: ObservedInstance, claim: Serving, desired: Desired) -> Action:
    proof = claim.proof
    if why_kept := claim.keeps(instance):
        return renewal(instance, why_kept)
    match claim.verdicts.get(instance.key):
        case Taken(rival=rival):
            return _unless_put_out(instance, str(rival), Grounds.ABSENCE, proof)
        case OverLimit(why=why):
            return _unless_put_out(instance, why, Grounds.OVER_LIMIT, proof)
        case Leaving(why=why, terminating=True):
            return cancel(instance, why, Grounds.TERMINATING, proof)
        case Leaving(why=why):
            return _unless_put_out(instance, why, Grounds.ABSENCE, proof)
        case _ if is_put_out_and_left(instance, claim) and (
            gone := pod_gone(instance, desired.living_pods)
        ):
            return cancel(instance, "its pod is gone", Grounds.POD_GONE, gone)
        case _:
            return _unless_put_out(instance, "it has no endpoint any more", Grounds.ABSENCE, proof)


def _unless_put_out(instance: ObservedInstance, why: str, grounds: Grounds, proof: Proof) -> Action:
    """Cancel the instance, unless a person set it OUT_OF_SERVICE: its pod may be wanted again."""
    if instance.status is InstanceStatus.OUT_OF_SERVICE:
        return renewal(instance, f"{why}; not cancelled, because a person set it OUT_OF_SERVICE")
    return cancel(instance, why, grounds, proof)


def renewal(instance: ObservedInstance, why: str) -> Renew:
    """Return an action that leaves the instance as it is."""
    return Renew(key=instance.key, syncer=syncer_of(instance), why=why, status=instance.status)


def cancel(instance: ObservedInstance, why: str, grounds: Grounds, proof: Proof) -> Cancel:
    syncer = syncer_of(instance)
    assert syncer is not None
    return Cancel(
        key=instance.key, syncer=syncer, why=why, grounds=grounds, proof=proof, was=instance.status
    )


def _replaced(observed: ObservedInstance, desired: Desired) -> Proof | None:
    """Return the proof that another pod listens at the instance's address and port."""
    instance, uid = observed.instance, pod_uid_of(observed)
    namespace = pod_namespace_of(observed) or ""
    there = (
        desired.sockets().get((namespace, instance.ip_addr, instance.main_port))
        if uid is not None
        else None
    )
    return there.proof if there is not None and uid not in there.data else None


def differences(instance: Instance, observed: ObservedInstance) -> tuple[Change, ...]:
    """Return the fields that a registration would change. Metadata of others, and a person's
    override, are kept."""
    there = observed.instance
    if instance is there or instance == there:  # nearly all are, in nearly every pass
        return ()
    fields = _fields(instance)
    pairs = [(name, was, fields[name]) for name, was in _fields(there).items()]
    dropped = our_keys(there.metadata) - our_keys(instance.metadata)
    keys = {*instance.metadata, *dropped, CLASS, LIMIT, DRAINED}
    pairs += [
        (f"metadata.{key}", there.metadata.get(key, ""), instance.metadata.get(key, ""))
        for key in sorted(keys)
    ]
    if not overridden(observed, instance.status):
        pairs.append(("status", there.status.value, instance.status.value))
    changes = []
    for name, was, becomes in pairs:
        if was == becomes:
            continue
        if name.startswith("metadata.") and sounds_secret(
            name
        ):  # changes are printed, and passwords must not be
            was, becomes = was and HIDDEN, becomes and HIDDEN
        changes.append(Change(field=name, was=was, becomes=becomes))
    return tuple(changes)


def overridden(observed: ObservedInstance, wanted: InstanceStatus) -> bool:
    """Say whether the instance keeps an override although we want another status. OUT_OF_SERVICE is
    always kept, because Eureka ignores a registration of UP (InstanceStatusOverrideRule). Another
    override is kept only against an UP: Eureka puts a registered DOWN before overrides
    (DownOrStartingRule), and it must reach the callers."""
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return True
    forced = override_of(observed) is not None
    return forced and observed.status is observed.instance.override and wanted is InstanceStatus.UP


def override_of(observed: ObservedInstance) -> InstanceStatus | None:
    """Return the status that a person or a tool set, and a cancel would delete, even if a DOWN of
    ours hides it."""
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return observed.status
    kept = observed.instance.override
    return None if kept in (InstanceStatus.UNKNOWN, InstanceStatus.UP) else kept


def _fields(one: Instance) -> Mapping[str, str]:
    return {
        "hostName": one.host_name,
        "ipAddr": one.ip_addr,
        "port": str(one.port.number) if one.port.enabled else "off",
        "securePort": str(one.secure_port.number) if one.secure_port.enabled else "off",
        "vipAddress": one.vip_address,
        "secureVipAddress": one.secure_vip_address,
        "homePageUrl": one.home_page_url,
        "statusPageUrl": one.status_page_url,
        "healthCheckUrl": one.health_check_url,
        "lease": f"{one.lease.renewal}/{one.lease.duration} s",
    }


@dataclass(slots=True)
class EarlierPlan:
    """What the previous pass planned, and from what. Each new plan changes it."""

    renewals: dict[InstanceKey, tuple[Wanted, Instance, Renew]] = field(default_factory=dict)
    _made_of: Sequence[object] | None = None
    """The inputs of the last plan, in its order, if it only renewed wanted instances."""
    _found: Sequence[Action | Blocked] = ()
    _plan: Plan = field(default_factory=Plan)

    def plan(self, desired: Desired, observed: Observed) -> Plan | None:
        """Return the last plan, if it only renewed wanted instances, and its inputs are the same
        objects."""
        known = self._made_of
        again = (
            known is not None and not observed.unread and same(known, _made_of(desired, observed))
        )
        return self._plan if again else None

    def renewal(self, syncer: SyncerRef, wanted: Wanted, instance: Instance) -> Renew | None:
        """Return the earlier renewal of the same wanted and registered instance; None if they must
        be compared."""
        known = self.renewals.get(instance.key)
        if (
            known is None
            or known[0] is not wanted
            or known[1] is not instance
            or known[2].syncer != syncer
        ):
            return None
        return known[2]

    def planned(
        self, found: Sequence[Action | Blocked], desired: Desired, observed: Observed
    ) -> Plan:
        """Return the plan of these actions; the last plan itself, if they are the same. Forget
        other renewals."""
        known = [self.renewals.get(one.key) for one in found]
        plain = all(
            was is not None and was[2] is one for was, one in zip(known, found, strict=True)
        )
        self._made_of = _made_of(desired, observed) if plain and not observed.unread else None
        if same(found, self._found):
            return self._plan
        for key in self.renewals.keys() - {one.key for one in found}:
            del self.renewals[key]
        blocked = [one for one in found if isinstance(one, Blocked)]
        self._found, self._plan = (
            found,
            sorted_plan((one for one in found if not isinstance(one, Blocked)), blocked),
        )
        return self._plan


def _made_of(desired: Desired, observed: Observed) -> Sequence[object]:
    claims = [
        claim.verdicts if isinstance(claim, Serving) else claim for claim in desired.claims.values()
    ]
    ours, others = (
        [one.instance for one in some.values()] for some in (observed.ours, observed.others)
    )
    return [desired.wanted_by, *claims, *ours, None, *others]
