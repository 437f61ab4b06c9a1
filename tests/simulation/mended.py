"""Defects that the program once had: each takes a rule away that came with the mend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import Held
from eurekube_sync.controller import steps
from eurekube_sync.desired import pods
from eurekube_sync.desired.endpoints import Backend
from eurekube_sync.desired.heirs import is_put_out_and_left
from eurekube_sync.desired.instance import Builder
from eurekube_sync.model.actions import Action, Grounds
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import EndpointSlice, Service
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace
from eurekube_sync.plan import ours

from .defect import Defect


def _with_every_slice(backends: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(service: Service, port: Any, slices: Sequence[EndpointSlice], **named: Any) -> Any:
        names = {known.name for known in service.ports}
        for piece in slices:
            if piece.endpoints and names.isdisjoint(listed.name for listed in piece.ports):
                raise InvalidSyncer(Reason.NO_SUCH_PORT, f"{piece.name} has none of the ports")
        return backends(service, port, slices, **named)

    return wrong


def _nothing_was_resolved(*_: Any) -> frozenset[int]:
    return frozenset()


def _no_heir(*_: Any) -> None:
    return None


def _put_out_goes(for_left_over: Callable[..., Action]) -> Callable[..., Action]:
    def wrong(instance: ObservedInstance, claim: Any, gone: Any) -> Action:
        if is_put_out_and_left(instance, claim) and not claim.keeps(instance):
            return ours.cancel(instance, "it has no endpoint", Grounds.ABSENCE, claim.proof)
        return for_left_over(instance, claim, gone)

    return wrong


def _of_their_own_hold(note: Callable[..., None]) -> Callable[..., None]:
    def wrong(self: Sightings, held: Held | None, *rest: Any, **named: Any) -> None:
        if held is not None:
            held = replace(held, awaited=tuple(hold for hold in held.holds if hold.mark))
        note(self, held, *rest, **named)

    return wrong


def mended() -> tuple[Defect, ...]:
    """All of these defects, in the order of the table."""
    return (
        Defect(
            name="the heir of a deleted syncer is not waited for",
            about="an heir",
            patches=((ours, "kept_for", _no_heir),),
        ),
        Defect(
            name="a slice of another writer hides the Service's ports",
            about="a stray slice",
            patches=((pods, "backends", _with_every_slice(vars(pods)["backends"])),),
        ),
        Defect(
            name="a port that was resolved once is forgotten",
            about="an ambiguous port",
            patches=((Builder, "stays_at", _nothing_was_resolved),),
        ),
        Defect(
            name="a port that was resolved once is forgotten with Eureka's list",
            about="an ambiguous port",
            patches=((Builder, "_served_before", _nothing_was_resolved),),
        ),
        Defect(
            name="an endpoint is an address",
            about="machines",
            patches=((Backend, "identity", property(lambda self: self.place)),),
        ),
        Defect(
            name="a removal that something else holds is not seen",
            about="a flapping app",
            patches=((Sightings, "note", _of_their_own_hold(Sightings.note)),),
        ),
        Defect(
            name="a list that fails lets second looks begin again",
            about="a flapping list",
            patches=((steps, "unread_of", lambda *_, **__: {}),),
        ),
        Defect(
            name="what a person put out of service goes with its endpoint",
            about="a broken selector",
            patches=((ours, "_for_left_over", _put_out_goes(vars(ours)["_for_left_over"])),),
        ),
    )
