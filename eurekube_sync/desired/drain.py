"""What a person drains by annotation: Services, Pods and Nodes, whose instances are DOWN for as long.

The mark in the instance tells what drained it: while the list of Pods or of Nodes is Unknown, nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from eurekube_sync.desired.spec import DRAIN_ANNOTATION, ignored_value
from eurekube_sync.model.kubernetes import Drainable, PodRef, Service
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.values import dataclass

DRAINED = "eurekube.drained"
"""What drains the instance: kinds, with commas between."""


class Kind(StrEnum):
    """What may bear the annotation, as it is in the mark."""

    SERVICE = "service"
    POD = "pod"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """What is known of one place."""

    by: tuple[Kind, ...] = ()
    """In the order of `Kind`; empty while nobody drains it."""
    why: str = ""
    drain_unknown: frozenset[Kind] = frozenset()
    """Whether one of these is drained is unknown."""
    ignored: tuple[str, ...] = ()
    """What is wrong with annotations that say neither."""


NO_DRAIN = Drain()

Known: TypeAlias = Mapping[str, Drainable] | Unknown | None
"""By its id; None when nobody asked."""


def drainable(id_: str, annotations: Mapping[str, str]) -> Drainable:
    """What a Service's, a Pod's or a Node's annotations say: nothing but "true" drains it."""
    drained = annotations.get(DRAIN_ANNOTATION) == "true"
    return Drainable(id=id_, drained=drained, ignored=ignored_value(annotations, DRAIN_ANNOTATION))


def known(source: Source[tuple[Drainable, ...]] | None) -> Known:
    """The list by id."""
    return {one.id: one for one in source.data} if isinstance(source, Complete) else source


@dataclass(frozen=True, slots=True)
class Drains:
    """What the Pods of a namespace and all Nodes say."""

    pods: Known = None
    nodes: Known = None

    def of(
        self, services: Sequence[Service], pod: PodRef | None, node: str, *, perhaps: Sequence[Service] = ()
    ) -> Drain:
        """Of an instance behind these Services, and `perhaps` those, of this pod on this node."""
        found: list[tuple[Kind, str, Drainable | None]] = [
            (Kind.SERVICE, f"Service {one.name}", drainable(one.name, one.annotations))
            for one in services
            if DRAIN_ANNOTATION in one.annotations
        ]
        if pod is not None and self.pods is not None:
            found.append((Kind.POD, f"pod {pod.name}", _found(self.pods, pod.uid)))
        if node and self.nodes is not None:
            found.append((Kind.NODE, f"node {node}", _found(self.nodes, node)))
        if not found and not perhaps:
            return NO_DRAIN
        drained: dict[Kind, str] = {}
        for kind, name, one in found:
            if one is not None and one.drained:
                drained.setdefault(kind, name)
        unknown = {kind for kind, _, one in found if one is None}
        if Kind.SERVICE not in drained and any(drainable(one.name, one.annotations).drained for one in perhaps):
            unknown.add(Kind.SERVICE)
        return Drain(
            by=tuple(drained),
            why=next((f"{name} is drained by its annotation" for name in drained.values()), ""),
            drain_unknown=frozenset(unknown),
            ignored=tuple(f"{name}: {one.ignored}" for _, name, one in found if one is not None and one.ignored),
        )

    def denied(self) -> Iterator[str]:
        """Why Pods or Nodes will not be looked at until somebody grants a right, or asks for less."""
        for what, source in (("Pods", self.pods), ("Nodes", self.nodes)):
            if isinstance(source, Unknown) and source.cause is Cause.DENIED:
                yield f"drain annotations of {what} are not read: {source.message}"


def _found(those: Mapping[str, Drainable] | Unknown, id_: str) -> Drainable | None:
    """None also for one that is not in the list: it went between two of them, and is no reason to bring anything up."""
    return None if isinstance(those, Unknown) else those.get(id_)
