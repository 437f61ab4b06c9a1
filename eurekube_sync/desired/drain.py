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


def is_drained(annotations: Mapping[str, str]) -> bool:
    """Whether these say so; nothing but "true" does."""
    return annotations.get(DRAIN_ANNOTATION) == "true"


def ignored_drain(annotations: Mapping[str, str]) -> str:
    """What is wrong with an annotation that says neither; empty for none."""
    return ignored_value(annotations, DRAIN_ANNOTATION)


def drainable(id_: str, annotations: Mapping[str, str]) -> Drainable:
    """What a Pod's or a Node's annotations say."""
    return Drainable(id=id_, drained=is_drained(annotations), ignored=ignored_drain(annotations))


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


NO_DRAIN = Drain()

Known: TypeAlias = Mapping[str, Drainable] | Unknown | None
"""By its id; None when nobody asked."""


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
        found = list(self._found(services, perhaps, pod, node))
        if not found:
            return NO_DRAIN
        drains = [(kind, name) for kind, name, drained in found if drained]
        return Drain(
            by=tuple(kind for kind, _ in drains),
            why=f"{drains[0][1]} is drained by its annotation" if drains else "",
            drain_unknown=frozenset(kind for kind, _, drained in found if drained is None),
        )

    def ignored(self, services: Sequence[Service], pod: PodRef | None, node: str) -> Iterator[str]:
        """What is wrong with annotations that say neither, for an instance behind these Services, of this pod on this
        node."""
        for service in services:
            if service.annotations and (why := ignored_drain(service.annotations)):
                yield f"Service {service.name}: {why}"
        if pod and self.pods and (why := _ignored(self.pods, pod.uid)):
            yield f"pod {pod.name}: {why}"
        if node and self.nodes and (why := _ignored(self.nodes, node)):
            yield f"node {node}: {why}"

    def denied(self) -> Iterator[str]:
        """Why Pods or Nodes will not be looked at until somebody grants a right, or asks for less."""
        for what, source in (("Pods", self.pods), ("Nodes", self.nodes)):
            if isinstance(source, Unknown) and source.cause is Cause.DENIED:
                yield f"drain annotations of {what} are not read: {source.message}"

    def _found(
        self, services: Sequence[Service], perhaps: Sequence[Service], pod: PodRef | None, node: str
    ) -> Iterator[tuple[Kind, str, bool | None]]:
        """What drains, and what may."""
        for service in (*services, *perhaps):
            if service.annotations and is_drained(service.annotations):
                yield Kind.SERVICE, f"Service {service.name}", True if service in services else None
                break
        if pod is not None and self.pods is not None and (drained := _state(self.pods, pod.uid)) is not False:
            yield Kind.POD, f"pod {pod.name}", drained
        if node and self.nodes is not None and (drained := _state(self.nodes, node)) is not False:
            yield Kind.NODE, f"node {node}", drained


def _state(those: Mapping[str, Drainable] | Unknown, id_: str) -> bool | None:
    """None also for one that is not in the list: it went between two of them, and is no reason to bring anything up."""
    found = None if isinstance(those, Unknown) else those.get(id_)
    return found.drained if found else None


def _ignored(those: Mapping[str, Drainable] | Unknown, id_: str) -> str:
    found = None if isinstance(those, Unknown) else those.get(id_)
    return found.ignored if found else ""
