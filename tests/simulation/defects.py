"""Makes the product wrong on purpose, one defect at a time. A promise has to catch each.

This is the one place where our own code is patched: a defect that the judge does not see would be
the judge's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.kubernetes import calls
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.apply import eureka as apply
from eurekube_sync.apply import kubernetes as settle
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake import removals
from eurekube_sync.brake.braking import Braked
from eurekube_sync.controller import reconcile, steps
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model import actions
from eurekube_sync.model.actions import Cancel, Renew, Update, comes_last
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.eureka import Instance, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import CrdAge
from eurekube_sync.model.ownership import CLUSTER, OWNER, Ownership
from eurekube_sync.model.ports import Dated
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.plan import ours, value
from eurekube_sync.plan.value import Plan

from . import truth
from .chance import story
from .defect import Defect, made_wrong
from .imports.wrong import wrong
from .mended import mended
from .misplaced import misplaced
from .misreadings import misreadings
from .mistaken import mistaken
from .misweighings import misweighings
from .neglects import neglects
from .page import Caught
from .run import run
from .trespasses import trespasses


def _once(identity: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, **how: identity(self)


def _empty_for_an_error(page: Callable[..., Any]) -> Callable[..., Any]:
    before: list[Any] = []

    def wrong(self: Any, kind: Any, call: Any) -> Any:
        try:
            found = page(self, kind, call)
        except ClusterError:
            follows = before and "continue" in call.query
            head = calls.ListMeta(resource_version=before[-1].resource_version if follows else "")
            return calls.RawPage(kind=kind.list_kind, items=None, metadata=head)
        before[:] = [found.metadata] if found else before
        return found

    return wrong


def _empty_when_failed(walk: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*arguments: Any) -> Any:
        try:
            return walk(*arguments)
        except ClusterError:
            return {}, {}

    return wrong


def _empty_registry(list_instances: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(self: EurekaClient) -> Any:
        found = list_instances(self)
        return Complete(data=()) if isinstance(found, Unknown) else found

    return wrong


def _only_what_adds(self: Plan) -> tuple[Any, ...]:
    return tuple(action.key for action in self.changes if not comes_last(action))


def _owner_alone(self: Ownership, instance: ObservedInstance | Instance) -> bool:
    return instance.metadata.get(OWNER) == self.owner


def _cluster_alone(self: Ownership, instance: ObservedInstance | Instance) -> bool:
    return instance.metadata.get(CLUSTER) == self.cluster


def _old_timestamp(self: apply.Applier, instance: Instance, *, stored: int = 0) -> Dated:
    return Dated(instance, stored - 1 if stored else int(self._clock.now() * 1000))


def _status_by_put(register: Callable[..., None]) -> Callable[..., None]:
    def wrong(self: EurekaClient, instance: Instance, *, dirty_timestamp: int) -> None:
        if instance.status is InstanceStatus.DOWN:
            self._call("PUT", f"/apps/{instance.key.app}/{instance.key.id}/status?value=DOWN")
        else:
            register(self, instance, dirty_timestamp=dirty_timestamp)

    return wrong


def _at_once(*arguments: Any, **named: Any) -> None:
    """Lets a deletion wait for nothing."""


def _too_late(self: RenewalLedger, keys: Any, now: float) -> list[Any]:
    return [
        key
        for key in keys
        if (last := self._last.get(key)) is None or now - last >= 10 * self.period
    ]


_LISTS = ("list_syncers", "list_services", "list_slices")
_LISTED: Mapping[str, Any] = {name: getattr(KubernetesCluster, name) for name in _LISTS}


def _cluster_first(identity: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(self: KubernetesCluster, **how: bool) -> Any:
        if how:
            return identity(self, **how)
        ahead = {name: listed(self, None) for name, listed in _LISTED.items()}
        vars(self)["ahead"] = ahead
        return identity(self)

    return wrong


def _from_before(name: str) -> Callable[..., Any]:
    return lambda self, namespaces: vars(self)["ahead"][name]


def _healed_when_frozen(for_unwanted: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(instance: ObservedInstance, *rest: Any) -> Any:
        action = for_unwanted(instance, *rest)
        if not isinstance(action, Renew):
            return action
        return replace(action, if_gone=replace(instance.instance, override=InstanceStatus.UNKNOWN))

    return wrong


def _always_live(self: KubernetesCluster) -> Complete[CrdAge]:
    return Complete(data=CrdAge(by_server=0.0, by_ours=0.0))


def _cancels_alone(action: Any) -> bool:
    return isinstance(action, Cancel) and action.was is InstanceStatus.UP


def _of_nobody_else(self: Scope, syncers: Any) -> Scope:
    return replace(self, elsewhere=frozenset())


def _removals_first(carry_out: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(given: Any, found: Any, report: Any) -> Any:
        found.applier.remove(
            [a for a in report.plan.actions if isinstance(a, Update | Cancel) and comes_last(a)], {}
        )
        return carry_out(given, found, report)

    return wrong


def _as_it_came(items: Iterable[Any], *_: Any) -> list[Any]:
    return list(items)


def _id_without_app(*, owner: str, namespace: str, app: str, address: str, port: int) -> str:
    return f"{owner}:{namespace}:any:{address}:{port}"


def _nowhere_else(given: Any, listed: Any, found: Any) -> Any:
    return replace(found, unseen=())


def _no_brake(plan: Plan, *arguments: Any, **named: Any) -> Braked:
    return Braked(plan=plan, held=None)


def defects() -> tuple[Defect, ...]:
    """All defects, in the order of the table."""
    from eurekube_sync.desired import instance

    return (
        Defect(
            name="an error is read as an empty page",
            about="outage",
            patches=((calls.Calls, "_page", _empty_for_an_error(calls.Calls._page)),),
        ),
        Defect(
            name="a Kubernetes list that failed is read as empty",
            about="outage",
            patches=((calls.Calls, "_walk", _empty_when_failed(calls.Calls._walk)),),
        ),
        Defect(
            name="a list of Eureka that failed is read as empty",
            about="an unlisted deletion",
            patches=(
                (EurekaClient, "list_instances", _empty_registry(EurekaClient.list_instances)),
            ),
        ),
        Defect(
            name="the owner's mark is not looked at",
            patches=((Ownership, "holds", _cluster_alone),),
        ),
        Defect(
            name="the cluster's mark is not looked at",
            patches=((Ownership, "holds", _owner_alone),),
        ),
        Defect(
            name="POST with an old timestamp", patches=((apply.Applier, "dated", _old_timestamp),)
        ),
        Defect(
            name="PUT .../status makes an instance DOWN",
            patches=((EurekaClient, "register", _status_by_put(EurekaClient.register)),),
        ),
        Defect(name="the finalizer goes at once", patches=((settle, "waits_for", _at_once),)),
        Defect(
            name="a deletion ends without a look at the other peers",
            about="one peer",
            patches=((reconcile, "_look_elsewhere", _nowhere_else),),
        ),
        Defect(name="leases are renewed too late", patches=((RenewalLedger, "due", _too_late),)),
        Defect(
            name="Kubernetes is listed before Eureka",
            about="paused",
            patches=(
                (KubernetesCluster, "identity", _cluster_first(KubernetesCluster.identity)),
                *((KubernetesCluster, name, _from_before(name)) for name in _LISTS),
            ),
        ),
        Defect(
            name="what is not served is registered on a 404",
            about="outage",
            patches=((ours, "_for_unwanted", _healed_when_frozen(ours._for_unwanted)),),
        ),
        Defect(
            name="the end of the CRD is read as deletions",
            patches=((KubernetesCluster, "crd_live", _always_live),),
        ),
        Defect(
            name="the brake does not count UP to DOWN",
            patches=tuple(
                (where, "removes", _cancels_alone) for where in (actions, value, removals)
            ),
        ),
        Defect(
            name="orphans are judged in a filtered view",
            patches=((Scope, "knowing", _of_nobody_else),),
        ),
        Defect(
            name="removals come before adds",
            patches=((reconcile, "carry_out", _removals_first(steps.carry_out)),),
        ),
        Defect(
            name="the cached list is trusted for a removal",
            patches=((Plan, "suspects", property(_only_what_adds)),),
        ),
        Defect(
            name="a pass that is cut always leaves the same leases",
            about="slow",
            patches=((apply, "oldest_first", _as_it_came), (apply, "rotated", _as_it_came)),
        ),
        Defect(
            name="one id, and so one override, for two apps",
            about="two apps",
            patches=(
                (instance, "instance_id", _id_without_app),
                (truth, "instance_id", _id_without_app),
            ),
        ),
        Defect(
            name="there is no brake",
            patches=((steps, "apply_brake", _no_brake), (removals, "apply_brake", _no_brake)),
        ),
        Defect(
            name="the identity is not asked again",
            about="another cluster",
            patches=((KubernetesCluster, "identity", _once(KubernetesCluster.identity)),),
        ),
        *misreadings(),
        *trespasses(),
        *misweighings(),
        *neglects(),
        *mistaken(),
        *mended(),
        *misplaced(),
        *wrong(),
    )


def catch(defect: Defect, *, first: int = 0, most: int = 2000) -> Caught:
    """Plays story after story with the defect, until a promise is broken."""
    with made_wrong(defect):
        for seed in range(first, first + most):
            verdict = run(story(seed, defect.about))
            if not verdict.kept:
                number = seed - first + 1
                return Caught(
                    defect=defect.name,
                    about=defect.about,
                    seeds=number,
                    promise=verdict.promise,
                    seed=seed,
                    what=verdict.what,
                )
    return Caught(defect=defect.name, about=defect.about, seeds=most, promise="")
