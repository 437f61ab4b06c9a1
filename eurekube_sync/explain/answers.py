"""How an answer is made where no syncer is concerned: nothing is registered, or too little was seen to say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eurekube_sync.controller.look import Look
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, Why, breaks, noted, unseen
from eurekube_sync.explain.subject import is_at, observed_at
from eurekube_sync.explain.what import OfAddress, OfApp, OfInstance, OfSyncer, What
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Source, Unknown


def not_registered(
    what: What, links: tuple[Link, ...], broken: Link, manifest: dict[str, Any] | None = None
) -> Explanation:
    """The chain ends at `broken`; what Eureka holds under the name is then somebody else's."""
    up = any(link.part is Part.EUREKA and link.mark is Mark.NOTE for link in links)
    return Explanation(
        about=str(what),
        links=links,
        outcome=Outcome.NOT_REGISTERED,
        sentence=f"{'Not ours' if up else 'Not registered'}: {broken.cause}",
        fix=broken.fix,
        manifest=manifest or {},
    )


def unread_answer(what: What, text: str, *links: Link, fix: str = "") -> Explanation:
    """Too little was seen to say whether it should be registered."""
    link = unseen(Part.SERVICES, text)
    return Explanation(
        about=str(what), links=(link, *links), outcome=Outcome.UNKNOWN, sentence=f"Unknown: {text}", fix=fix
    )


def nothing_link(text: str, near: Sequence[str], fix: str) -> Link:
    """There is no such thing; `near` are names that are nearly right."""
    return breaks(
        Part.SYNCER,
        Why.NOTHING_FOUND,
        text,
        details=(f"nearest: {', '.join(near)}",) if near else (),
        cause=text,
        fix=fix,
    )


def in_eureka(what: What, look: Look) -> Iterable[Link]:
    """Instances of the name, whosever they are."""
    listed: Source[tuple[ObservedInstance, ...]] = look.listed
    if isinstance(listed, Unknown):
        yield unseen(Part.EUREKA, f"what Eureka holds could not be looked at: {listed.message}")
        return
    found = [one for one in listed.data if is_meant(what, one)]
    for one in found[:3]:
        whose = f"syncer {syncer_of(one)}" if syncer_of(one) else "no mark of ours"
        yield noted(Part.EUREKA, f"Eureka holds {one.key} at {observed_at(one)}, {one.status}, {whose}")


def is_meant(what: What, one: ObservedInstance) -> bool:
    """Whether an instance in Eureka is what was asked about."""
    match what:
        case OfSyncer(ref=ref):
            return syncer_of(one) == ref
        case OfApp(name=name):
            return one.key.app == name
        case OfAddress():
            return is_at(one, what)
        case OfInstance(id=id_):
            return one.key.id == id_
        case _:
            return False
