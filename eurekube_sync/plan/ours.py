"""The action for an instance of ours that is registered: renew, update or cancel, with the reason.

An update keeps what others set: an OUT_OF_SERVICE or another override, and metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import assert_never

from eurekube_sync.desired.catalog import DRAINED
from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Desired,
    Leaving,
    NotServed,
    OverLimit,
    Serving,
    Taken,
    Wanted,
    is_suspended,
)
from eurekube_sync.desired.heirs import is_put_out_and_left, kept_for
from eurekube_sync.desired.limit import LIMIT
from eurekube_sync.desired.scope import Policy, no_longer_granted
from eurekube_sync.model.actions import Action, Cancel, Change, Grounds, Renew, Update
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.ownership import CLASS, our_keys, pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.sanitize import HIDDEN, sounds_secret
from eurekube_sync.model.sources import Complete, Proof, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.kubernetes import pod_gone


def asked_for(
    instance: ObservedInstance, claim: Serving | None, desired: Desired, observed: Observed
) -> Action:
    """Return the action that the instance's syncer asks for. `claim` is that of the syncer that
    wants the instance; None if nobody does."""
    if claim is None:
        action = _for_unwanted(instance, desired)
        if isinstance(action, Cancel) and observed.ownership.is_former(instance):
            successor = observed.ownership.key_of(instance)
            if successor in desired.wanted_by:
                return replace(action, why=f"the id of its endpoint is {successor.id} now")
        return action
    judge = _judge_of(instance, claim, desired)
    if judge is not None:
        verdict = judge.verdicts[instance.key]
        if isinstance(verdict, Taken):
            return _for_wanted(judge, verdict.wanted, instance)
        gone = pod_gone(instance, desired.living_pods)
        return _for_left_over(instance, judge, gone)
    wanted = claim.wanted_at(instance.key)
    assert wanted is not None  # the claim wants it
    return _for_wanted(claim, wanted, instance)


def as_allowed(
    action: Action, desired: Desired, observed: Observed, last_seen_up: Collection[InstanceKey]
) -> Action:
    """Return the action for an instance of ours, or a renewal if it is not allowed. `last_seen_up`
    are the instances that this process last saw UP.

    | the action                                        | suspended syncer  | upsert-only       |
    |---------------------------------------------------|-------------------|-------------------|
    | a renewal, and this process last saw it UP        | as it is          | as it is          |
    | any other renewal                                 | none on a 404     | as it is          |
    | an update that takes away a name or host without  | as it is          | as it is          |
    | a grant                                           |                   |                   |
    | any other update                                  | a renewal         | as it is          |
    | a cancel                                          | a renewal         | a renewal         |
    """
    key = action.key
    syncer = action.syncer
    claim = desired.claims.get(syncer) if syncer else None
    if is_suspended(claim):
        return _of_suspended(action, claim, observed.ours[key], key in last_seen_up)
    if isinstance(action, Cancel) and not may_cancel(observed):
        # Leases are renewed before Kubernetes is read. And an instance that is left to expire is
        # removed without a proof, and the brake does not weigh it.
        why = f"{action.why}; not cancelled, because of --policy {Policy.UPSERT_ONLY}"
        return Renew(key=key, syncer=syncer, why=why, status=action.was)
    return action


def may_cancel(observed: Observed) -> bool:
    """Say whether the policy allows cancels. Under `--policy upsert-only`, an instance that nothing
    wants any more stays as it is, like a record of external-dns."""
    return observed.scope.policy is not Policy.UPSERT_ONLY


def _of_suspended(
    action: Action, claim: Claim | None, registered: ObservedInstance, last_seen_up: bool
) -> Action:
    """Return the action for an instance of a suspended syncer. A 404 registers again only what this
    process last saw UP, because a list does not show whether an instance was lost or cancelled."""
    if isinstance(action, Renew):
        if last_seen_up:
            return action
        return replace(action, if_gone=None)
    if_gone = None
    if isinstance(action, Update):
        if no_longer_granted(claim, registered):
            return action
        if registered.status is InstanceStatus.UP and last_seen_up:
            if_gone = registered.unchanged()
    return Renew(
        key=action.key,
        syncer=action.syncer,
        why=f"not changed, because syncer {action.syncer} is suspended",
        if_gone=if_gone,
        status=registered.status,
    )


def _judge_of(instance: ObservedInstance, wanting: Serving, desired: Desired) -> Serving | None:
    """Return the syncer in an instance's mark, if it is served and says what becomes of the
    endpoint, while the one that wants the instance is suspended: that one would change nothing. It
    keeps what another syncer deleted, detached by limit 0, or has no endpoint for any more."""
    if not wanting.spec.suspend:
        return None  # nearly always
    marked = syncer_of(instance)
    if marked is None or marked == wanting.syncer.ref:
        return None
    claim = desired.claims.get(marked)
    if not isinstance(claim, Serving) or claim.spec.suspend or claim.spec.claims_nothing:
        return None
    verdict = claim.verdicts.get(instance.key)
    if isinstance(verdict, Taken | Leaving):
        return claim
    return None


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
    grounds = Grounds.ABSENCE
    if wanted.drained:
        grounds = Grounds.DRAINED
    return Update(
        instance=wanted.instance,
        syncer=syncer,
        why=wanted.why,
        changes=changes,
        was=observed.status,
        stored_timestamp=observed.last_dirty_timestamp,
        proof=claim.proof,
        grounds=grounds,
        override=observed.instance.override,
    )


def _for_unwanted(instance: ObservedInstance, desired: Desired) -> Action:
    """Return the action for an instance that no syncer wants. The first row that fits decides.

    | what is known                                    | action                                  |
    |--------------------------------------------------|-----------------------------------------|
    | a source of its syncer, or the list of syncers,  | renewal                                 |
    | is unknown                                       |                                         |
    | another pod has its address and port             | cancel                                  |
    | its pod is gone, and it is kept only until then  | cancel                                  |
    | an heir may claim it, and its pod may live       | renewal                                 |
    | its syncer is being deleted                      | cancel                                  |
    | its syncer is not served                         | renewal                                 |
    | its syncer is served                             | as `_for_left_over` says                |
    | there is no such syncer, and the CRD came later  | cancel, unless a person set it          |
    |                                                  | OUT_OF_SERVICE                          |
    | there is no such syncer                          | cancel                                  |
    """
    syncer = syncer_of(instance)
    assert syncer is not None  # `Observed.ours` holds none without
    claim = desired.claims.get(syncer)
    listed = desired.syncers.of(syncer.namespace)
    if isinstance(claim, NotServed) and claim.source is not None:
        return renewal(instance, f"not served: {claim.reason}")
    if claim is None and isinstance(listed, Unknown):
        return renewal(instance, "its syncers could not be listed")
    # Evidence about the pod counts before what its syncer says.
    gone = pod_gone(instance, desired.living_pods)
    replaced = _replaced(instance, desired)
    proven = _proven_dead(instance, claim, gone, replaced)
    if proven is not None:
        return proven
    heir = kept_for(instance, desired)
    if heir is not None and gone is None:
        return renewal(instance, heir)
    match claim:
        case Deleting():
            why = "its syncer is being deleted"
            return cancel(instance, why, Grounds.SYNCER_DELETED, claim.proof)
        case NotServed():
            return renewal(instance, f"not served: {claim.reason}")
        case Serving():
            return _for_left_over(instance, claim, gone)
        case None:
            assert isinstance(listed, Complete)  # else it was renewed above
            why = f"there is no syncer {syncer}"
            if _written_before(instance, desired.crd_installed):
                # Its syncer may be restored, and want it.
                return _unless_put_out(instance, why, Grounds.SWEPT, listed.proof)
            return cancel(instance, why, Grounds.ORPHANED, listed.proof)
        case _:  # pragma: no cover
            assert_never(claim)


def _proven_dead(
    instance: ObservedInstance, claim: Claim | None, gone: Proof | None, replaced: Proof | None
) -> Cancel | None:
    if replaced is not None:
        return cancel(instance, "another pod has its address and port", Grounds.REPLACED, replaced)
    if gone is None or not isinstance(claim, NotServed | Serving):
        return None
    if claim.keeps_until_pod_gone(instance):
        return cancel(instance, "its pod is gone", Grounds.POD_GONE, gone)
    return None


def _written_before(instance: ObservedInstance, moment: float) -> bool:
    """Say whether the instance may have been written before a moment in Unix seconds. Our clock and
    Eureka's both tell when; the earlier counts, because a clock that was wrong at that time may be
    right now."""
    written = instance.last_dirty_timestamp
    if instance.registered:
        written = min(written, instance.registered)
    return written < moment * 1000


def _for_left_over(instance: ObservedInstance, claim: Serving, gone: Proof | None) -> Action:
    """Return the action for an instance that its served syncer does not want. `gone` proves that
    its pod is gone."""
    proof = claim.proof
    why_kept = claim.keeps(instance)
    if why_kept is not None:
        return renewal(instance, why_kept)
    if gone is not None and is_put_out_and_left(instance, claim):
        return cancel(instance, "its pod is gone", Grounds.POD_GONE, gone)
    match claim.verdicts.get(instance.key):
        case Taken(rival=rival):
            return _unless_put_out(instance, str(rival), Grounds.ABSENCE, proof)
        case OverLimit(why=why):
            return _unless_put_out(instance, why, Grounds.OVER_LIMIT, proof)
        case Leaving(why=why, terminating=True):
            return cancel(instance, why, Grounds.TERMINATING, proof)
        case Leaving(why=why):
            return _unless_put_out(instance, why, Grounds.ABSENCE, proof)
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


def unread_renewal(instance: ObservedInstance, observed: Observed) -> Renew:
    """Return the action for an instance whose uncached read failed."""
    unread = observed.unread[instance.key]
    return renewal(instance, f"the instance could not be read again: {unread.why}")


def cancel(instance: ObservedInstance, why: str, grounds: Grounds, proof: Proof) -> Cancel:
    syncer = syncer_of(instance)
    assert syncer is not None
    return Cancel(
        key=instance.key, syncer=syncer, why=why, grounds=grounds, proof=proof, was=instance.status
    )


def _replaced(observed: ObservedInstance, desired: Desired) -> Proof | None:
    """Return the proof that another pod listens at the instance's address and port."""
    uid = pod_uid_of(observed)
    if uid is None:
        return None
    instance = observed.instance
    namespace = pod_namespace_of(observed) or ""
    socket = (namespace, instance.ip_addr, instance.main_port)
    there = desired.sockets().get(socket)
    if there is None or uid in there.data:
        return None
    return there.proof


def differences(instance: Instance, observed: ObservedInstance) -> tuple[Change, ...]:
    """Return the fields that a registration would change. Metadata of others, and a person's
    override, are kept."""
    there = observed.instance
    if instance is there or instance == there:  # nearly all are, in nearly every pass
        return ()
    changes: list[Change] = []
    fields = _fields(instance)
    for name, was in _fields(there).items():
        becomes = fields[name]
        if was != becomes:
            changes.append(Change(field=name, was=was, becomes=becomes))
    changes += _metadata_changes(there.metadata, instance.metadata)
    was = there.status.value
    becomes = instance.status.value
    if was != becomes and not overridden(observed, instance.status):
        changes.append(Change(field="status", was=was, becomes=becomes))
    return tuple(changes)


def _metadata_changes(there: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[Change]:
    dropped = our_keys(there) - our_keys(wanted)
    for key in sorted({*wanted, *dropped, CLASS, LIMIT, DRAINED}):
        was = there.get(key, "")
        becomes = wanted.get(key, "")
        if was == becomes:
            continue
        name = f"metadata.{key}"
        if sounds_secret(name):  # changes are printed, and passwords must not be
            was = was and HIDDEN
            becomes = becomes and HIDDEN
        yield Change(field=name, was=was, becomes=becomes)


def overridden(observed: ObservedInstance, wanted: InstanceStatus) -> bool:
    """Say whether the instance keeps an override although we want another status. OUT_OF_SERVICE is
    always kept, because Eureka ignores a registration of UP (InstanceStatusOverrideRule). Another
    override is kept only against an UP: Eureka puts a registered DOWN before overrides
    (DownOrStartingRule), and it must reach the callers."""
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return True
    if wanted is not InstanceStatus.UP or override_of(observed) is None:
        return False
    return observed.status is observed.instance.override


def override_of(observed: ObservedInstance) -> InstanceStatus | None:
    """Return the status that a person or a tool set, and a cancel would delete, even if a DOWN of
    ours hides it."""
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return observed.status
    kept = observed.instance.override
    if kept in (InstanceStatus.UNKNOWN, InstanceStatus.UP):
        return None
    return kept


def _fields(instance: Instance) -> Mapping[str, str]:
    return {
        "hostName": instance.host_name,
        "ipAddr": instance.ip_addr,
        "port": _port(instance.port),
        "securePort": _port(instance.secure_port),
        "vipAddress": instance.vip_address,
        "secureVipAddress": instance.secure_vip_address,
        "homePageUrl": instance.home_page_url,
        "statusPageUrl": instance.status_page_url,
        "healthCheckUrl": instance.health_check_url,
        "lease": f"{instance.lease.renewal}/{instance.lease.duration} s",
    }


def _port(port: Port) -> str:
    if port.enabled:
        return str(port.number)
    return "off"
