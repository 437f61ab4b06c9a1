"""Defects in imports. A promise has to catch each."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec

from eurekube_sync.apply import import_status
from eurekube_sync.apply import imports as apply
from eurekube_sync.brake import imports as brake
from eurekube_sync.brake.imports import Doubts
from eurekube_sync.controller import imports as controller
from eurekube_sync.desired import catalog
from eurekube_sync.desired import imports as desired
from eurekube_sync.desired.imports import ByName, Importing
from eurekube_sync.desired.scope import Policy
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.imports import ImportPort, ImportService
from eurekube_sync.model.kubernetes import EndpointSlice
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from eurekube_sync.observe import imports as observe
from eurekube_sync.plan import imports as plan
from eurekube_sync.plan import packing
from eurekube_sync.plan.imports import ServiceWrite
from tests.simulation.defect import Defect

_names: Any = desired  # also those that it imports
_Judge: Any = desired.Judge
_Lists: Any = vars(desired)["_Lists"]


def _without(reason: Reason) -> Callable[..., Any]:
    """Leaves no instance out for this reason."""
    left_out = _Judge._left_out

    def wrong(self: Any, observed: Any, ports: Any) -> Any:
        found, why = left_out(self, observed, ports)
        return (None, "") if found is reason and ports else (found, why)

    return wrong


def _never(*arguments: Any, **named: Any) -> bool:
    return False


def _always(*arguments: Any, **named: Any) -> bool:
    return True


def _alone(given: Any, found: Any, doubts: Doubts) -> Any:
    return found, doubts


def _none_unseen(beside: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(given: Any, found: Any, doubts: Doubts) -> Any:
        found, doubts = beside(given, found, doubts)
        return found, replace(doubts, unseen=())

    return wrong


def _none_young(beside: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(given: Any, found: Any, doubts: Doubts) -> Any:
        found, doubts = beside(given, found, doubts)
        return found, replace(doubts, young=())

    return wrong


def _whatever_is_up(self: Importing, names: ByName) -> Importing:
    """Wants all that is UP on another server, whatever the rules say."""
    verdicts: dict[Any, Any] = {}
    for instance in names.of(self.spec):
        place = desired.Socket(instance.instance.ip_addr, (instance.instance.port.number,))
        if instance.status is InstanceStatus.UP:
            verdicts[instance.key] = desired.Wanted(socket=place, ports=())
    return replace(self, verdicts=verdicts, malformed=())


def _missing_if_not_freed(brake_imports: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(found: Any, doubts: Doubts, how: Any) -> Any:
        known = Doubts(age=1e9) if how.freed_by_annotation else doubts
        return brake_imports(found, known, how)

    return wrong


def _ports_of_any(service_write: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(claim: Importing) -> Any:
        service = claim.service
        if service is None or service.controller or claim.spec.service.adopt:
            return service_write(claim)
        ports = (ImportPort(name="http", port=8000),)
        made = ImportService(owner=claim.import_, name=service.name, ports=ports)
        return ServiceWrite(made, service.resource_version)

    return wrong


def _of_the_service(self: Any, import_: Any) -> tuple[EndpointSlice, ...]:
    source = self._view.slices.of(import_.namespace)
    name = _names.service_name(import_)
    theirs = [piece for piece in source.data if not _names.is_of_an_import(piece)]
    own = self._own.get(import_.uid, ())
    return (*own, *(piece for piece in theirs if piece.service == name))


def _of_the_namespace(self: Any, import_: Any) -> tuple[EndpointSlice, ...]:
    own = [piece for pieces in self._own.values() for piece in pieces]
    return tuple(piece for piece in own if piece.namespace == import_.namespace)


def _slices_alone(thing: Any) -> bool:
    return isinstance(thing, EndpointSlice) and _names.is_of_an_import(thing)


def _services_alone(thing: Any) -> bool:
    return not isinstance(thing, EndpointSlice) and _names.is_of_an_import(thing)


def _empty_registry(registry: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(found: Any, listed: Any) -> Any:
        known = registry(found, listed)
        return known if isinstance(known, Complete) else Complete(data=())

    return wrong


def _as_listed(planned: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(given: Any, found: Any, report: Any, instances: Any) -> Any:
        if not isinstance(found.registry, Complete):
            found = replace(found, registry=Complete(data=SimpleNamespace(newest=0.0)))
        return planned(given, found, report, instances)

    return wrong


def _of_this_cluster(parse: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(import_: Any) -> Any:
        spec = parse(import_)
        select = msgspec.structs.replace(spec.select, this_cluster=True)
        return msgspec.structs.replace(spec, select=select)

    return wrong


def _never_suspended(parse: Callable[..., Any]) -> Callable[..., Any]:
    return lambda import_: msgspec.structs.replace(parse(import_), suspend=False)


def _by_people(crd: Any, imports: Any) -> Complete[bool]:
    return Complete(data=True)


def _removes_nothing(plan_imports: Callable[..., Any]) -> Callable[..., Any]:
    return lambda claims, policy: plan_imports(claims, Policy.UPSERT_ONLY)


def _in_its_case(self: ByName, spec: Any) -> Any:
    return self._by_app.get((spec.app or spec.vip_address).lower(), ())


def _made_once(service_write: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(claim: Importing) -> Any:
        before = claim.import_.status
        known = before is not None and before.ready
        return None if claim.service is None and known else service_write(claim)

    return wrong


def _no_conflict(with_: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(problems: Any, reasons: Any, without: Any) -> Any:
        return with_((), reasons, without)

    return wrong


def _whatever_is_held(approval: Any, removals: Any, held: Any) -> frozenset[Any]:
    return frozenset(removal.key for removal in list(held)[:1]) if approval else frozenset()


def _no_holds(*arguments: Any, **named: Any) -> tuple[Any, ...]:
    return ()


def _nothing_seen(*arguments: Any, **named: Any) -> frozenset[Any]:
    return frozenset()


def _nothing_kept(*arguments: Any, **named: Any) -> dict[Any, Any]:
    return {}


def _all_seen(last: Any, certain: Any, brake: Any) -> list[Any]:
    return list(last)


def _always_young(age: float | None) -> bool:
    return age is not None


def wrong() -> tuple[Defect, ...]:
    """All of these defects, in the order of the promises."""
    beside = vars(controller)["_beside"]
    service_write = vars(plan)["_service_write"]
    cut = (
        ("other Eureka servers are not asked", ((controller, "_beside", _alone),)),
        (
            "a Eureka server that cannot be listed has nothing",
            ((controller, "_beside", _none_unseen(beside)),),
        ),
        (
            "another Eureka server that has just started is believed",
            ((controller, "_beside", _none_young(beside)),),
        ),
        (
            "what only another Eureka server lists is not judged",
            ((Importing, "elsewhere", _whatever_is_up),),
        ),
    )
    of_imports = (
        (
            "a Eureka that has just started is believed",
            ((brake, "is_young", _never), (controller, "is_young", _never)),
        ),
        (
            "an annotation lets go what a young registry lacks",
            ((controller, "brake_imports", _missing_if_not_freed(brake.brake_imports)),),
        ),
        ("the last endpoint leaves at once", ((brake, "unconfirmed", _no_holds),)),
        (
            "a list that fails lets the wait for a last endpoint begin again",
            ((controller, "unread_of", _nothing_kept),),
        ),
        ("what a young registry lacks is seen to be gone", ((brake, "_seen_gone", _all_seen),)),
        ("there is no brake for imports", ((brake, "too_much", _no_holds),)),
        (
            "the ports of any Service are written",
            ((plan, "_service_write", _ports_of_any(service_write)),),
        ),
        ("slices are known by their Service", ((_Lists, "own", _of_the_service),)),
        ("slices are known by their namespace", ((_Lists, "own", _of_the_namespace),)),
        ("networks are not looked at", ((_Judge, "_left_out", _without(Reason.OUTSIDE_NETWORKS)),)),
        ("an instance that is DOWN is imported", ((_Judge, "_left_out", _without(Reason.NOT_UP)),)),
        (
            "an address of the cluster is imported",
            ((_Judge, "_left_out", _without(Reason.IN_CLUSTER)),),
        ),
        (
            "an instance of another zone is imported",
            ((_Judge, "_left_out", _without(Reason.NOT_MATCHING)),),
        ),
        (
            "what a syncer registered is imported",
            ((desired, "parse", _of_this_cluster(_names.parse)),),
        ),
        ("slices of imports are registered", ((catalog, "is_of_an_import", _services_alone),)),
        ("Services of imports are registered", ((catalog, "is_of_an_import", _never),)),
        (
            "a list of Eureka that failed has no app",
            (
                (controller, "_registry", _empty_registry(vars(controller)["_registry"])),
                (controller, "_planned", _as_listed(vars(controller)["_planned"])),
            ),
        ),
        ("a suspended import is written", ((desired, "parse", _never_suspended(_names.parse)),)),
        (
            "the end of the CRD of imports is read as deletions",
            ((observe, "_crd_live", _by_people),),
        ),
        (
            "an endpoint whose instance has gone stays",
            ((controller, "plan_imports", _removes_nothing(plan.plan_imports)),),
        ),
        (
            "a registry stays young",
            ((brake, "is_young", _always_young), (controller, "is_young", _always_young)),
        ),
        ("a second look is never the second", ((brake, "seen_before", _nothing_seen),)),
        ("an app is looked for in small letters", ((ByName, "of", _in_its_case),)),
        (
            "a Service that a person deleted is not made again",
            ((plan, "_service_write", _made_once(service_write)),),
        ),
        (
            "nobody is told of a Service of somebody else",
            ((import_status, "view_of", _no_conflict(vars(import_status)["view_of"])),),
        ),
        ("a slice is written in each pass", ((packing, "_differs", _always),)),
        ("the status of an import is written in each pass", ((apply, "worth_writing", _always),)),
        (
            "a plan id releases a part of what it names",
            ((brake, "approved_by", _whatever_is_held),),
        ),
    )
    return (
        *(Defect(name=name, about="cut servers", patches=patches) for name, patches in cut),
        *(Defect(name=name, about="imports", patches=patches) for name, patches in of_imports),
    )
