"""What one pass has seen and done so far, and how the judge reads Eureka."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.embedded.instances import InstanceInfo, Listed

from .troubles import Call
from .truth import Ref
from .world import Key

OWNER = "prod"
UP, OUT = "UP", "OUT_OF_SERVICE"

State = dict[Key, Listed]
"""All instances of one Eureka server."""


class Violation(BaseException):
    """A broken promise. No part of the program can catch it."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise
        self.what = what


@dataclass(slots=True)
class PassView:
    """What one pass of one copy has seen so far; times are seconds of the story, None for never."""

    begun: float
    eureka: float | None = None
    kubernetes: float | None = None
    older: bool = False
    """Whether a list was answered as it was earlier; `kubernetes` is then that moment."""
    lists: dict[Call, float] = field(default_factory=dict)
    """The moment that each list of Kubernetes shows."""
    pods_listed: dict[str, float] = field(default_factory=dict)
    """By namespace, when the list of its pods began; under the empty name that of all."""
    looked: dict[Key, float] = field(default_factory=dict)
    """When each instance was last read uncached."""
    stood: set[Key] = field(default_factory=set)
    """The instances that such reads showed."""
    looked_up: set[str] = field(default_factory=set)
    """UIDs of the pods of which such a read showed an instance UP, or put out of service."""
    looked_up_keys: set[Key] = field(default_factory=set)
    """The instances that such a read showed UP, or put out of service."""
    brought: set[Key] = field(default_factory=set)
    """The instances that it made UP."""
    taken: dict[Key, Ref] = field(default_factory=dict)
    """The instances that it cancelled or turned DOWN, and their syncers."""
    unseen: set[Key] = field(default_factory=set)
    """The instances that it removed, and that another copy brought UP after it read them."""
    taken_pods: dict[Key, str] = field(default_factory=dict)
    """The UID of the pod of each of these."""
    emptied: set[str] = field(default_factory=set)
    """Apps that it left without UP instances, and that might still have served."""
    emptied_as_asked: set[str] = field(default_factory=set)
    """Apps without UP instances because a person asked for it."""
    serve_themselves: set[tuple[str, str]] = field(default_factory=set)
    """App and address of instances that an uncached read showed UP, and that no installation of the
    program wrote."""
    gave_way: dict[Key, Ref] = field(default_factory=dict)
    """The instances that it cancelled or turned DOWN beside such an instance, and their syncers."""
    other_half: bool = False
    """Whether the pass is of the installation beside the program's, for the other team's
    syncers."""
    process: object | None = None
    """The process that makes the pass. Another process does not share its memory."""
    approved: str | None = None
    """The plan id that it was given."""
    troubled: bool = False
    troubled_cluster: bool = False
    """Whether a trouble struck a call to Kubernetes or the program itself, or another cluster
    answered."""
    strayed: bool = False
    """Whether another cluster listed objects to it."""
    found_home: bool = False
    """Whether it asked for the UID again after that, and its own cluster answered."""
    found_elsewhere: bool = False
    """Whether it asked for the UID, and another cluster answered."""
    last_elsewhere: bool = False
    """Whether its last read of Kubernetes was answered by another cluster."""
    failed: set[Call] = field(default_factory=set)
    """The kinds of calls that a trouble struck."""
    paused: bool = False
    stopped: bool = False
    """Whether it reported that another owner serves its syncers, and only renewed."""
    writes: list[str] = field(default_factory=list)
    endpoints: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    """The endpoints of all imports, by UID, before it took one away (`imports.holds`)."""
    losing: set[str] = field(default_factory=set)
    """UIDs of the imports that it took endpoints from, and nobody asked for it."""

    @property
    def moment(self) -> float:
        """The pass must have seen everything that was true at this moment and stayed so."""
        if self.older and self.kubernetes is not None:
            return self.kubernetes
        return max(
            self.kubernetes if self.kubernetes is not None else self.begun, self.eureka or 0.0
        )

    @property
    def specs(self) -> float:
        """The pass must have seen every spec of this moment and later."""
        return self.lists.get(Call.SYNCERS, self.moment)


def syncer_of(instance: InstanceInfo) -> Ref:
    """The syncer of its mark."""
    namespace, _, name = instance.metadata.get("eurekube.syncer", "").partition("/")
    return namespace, name


def pod_of(instance: InstanceInfo) -> str:
    """The UID of the pod in its mark; empty for a Service's."""
    return str(instance.metadata.get("eurekube.pod", "").rpartition("/")[2])


def is_up(listed: Listed | None) -> bool:
    """Whether callers are sent there."""
    return status_of(listed) == UP


def status_of(listed: Listed | None) -> str:
    """Its status; empty if there is no instance."""
    return listed[0].status.value if listed is not None else ""


def change(was: Listed, stands: Listed | None) -> str:
    """Says in words how it changed."""
    if stands is None:
        return "cancelled"
    return f"written anew, {was[0].status.value} to {stands[0].status.value}"


def named(ref: Ref) -> str:
    """Names a syncer in a sentence."""
    return "/".join(ref)
