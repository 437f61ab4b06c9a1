"""Defects that let the syncers of one namespace change another's instances, or ours change somebody
else's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eurekube_sync.adapters.eureka.everywhere import EverywhereBatches
from eurekube_sync.adapters.eureka.peers import EurekaPeers
from eurekube_sync.desired import resolve, rivals
from eurekube_sync.desired.catalog import pods_by_socket
from eurekube_sync.desired.claims import Desired, Right
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import ClusterView
from eurekube_sync.model.ports import Batched
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from eurekube_sync.plan import make
from eurekube_sync.plan.left_out import first_registered

from .defect import Defect


def _of_one_namespace(places: Callable[..., Any]) -> Callable[..., Any]:
    return lambda key, _namespace, sockets: places(key, "", sockets)


def _all_come(first_registered: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(desired: Desired, observed: Any) -> Any:
        found = first_registered(desired, observed)
        claims = {}
        for ref, claim in found.claims.items():
            outdone = [key for key, rival in claim.rivals.items() if rival.right is Right.FIRST]
            claims[ref] = claim.with_rivals(dict.fromkeys(outdone))
        return replace(found, claims=claims)

    return wrong


class _AnyNamespace(dict[Any, Any]):
    """Finds what the slices of any namespace say about an address and port."""

    def get(self, key: Any, default: Any = None) -> Any:
        theirs = [
            uids for (_, *socket), uids in self.items() if tuple(socket) == key[1:] and _ != key[0]
        ]
        return theirs[0] if theirs else super().get(key, default)


def _of_any_namespace(pods_by_socket: Callable[..., Any]) -> Callable[..., Any]:
    return lambda view: _AnyNamespace(pods_by_socket(replace(view, services=_kept_up(view))))


def _kept_up(view: ClusterView) -> Any:
    services = {
        namespace: Complete(data=tuple(replace(one, selects=True) for one in source.data))
        for namespace, source in view.services.by_namespace.items()
        if isinstance(source, Complete)
    }
    return replace(view.services, by_namespace=services)


def _by_heartbeats(self: EverywhereBatches, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
    return frozenset(
        key for key, found in zip(keys, self.renew(keys), strict=True) if found is Batched.ABSENT
    )


_RULES = tuple(
    _all_come(first_registered) if rule is first_registered else rule for rule in make.RULES
)


def trespasses() -> tuple[Defect, ...]:
    """All of these defects, in the order of the table."""
    return (
        Defect(
            name="age decides between namespaces, too",
            about="neighbours",
            patches=((rivals, "_places", _of_one_namespace(vars(rivals)["_places"])),),
        ),
        Defect(
            name="an address that a person wrote is registered beside another namespace's pod",
            about="neighbours",
            patches=((rivals, "outdone", lambda bids: ()),),
        ),
        Defect(
            name="any syncer that claims an address that a person wrote is registered",
            about="neighbours",
            patches=((make, "RULES", _RULES),),
        ),
        Defect(
            name="slices of any namespace prove that a pod is gone",
            about="neighbours",
            patches=((resolve, "pods_by_socket", _of_any_namespace(pods_by_socket)),),
        ),
        Defect(
            name="an id is free if its heartbeat is a 404",
            about="taken ids",
            patches=((EverywhereBatches, "absent", _by_heartbeats),),
        ),
        Defect(
            name="an id is free when the first server lacks it",
            about="taken ids",
            patches=((EurekaPeers, "read_everywhere", EurekaPeers.read_instance),),
        ),
    )
