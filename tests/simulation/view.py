"""What one pass has seen and done so far, and how the judge reads what Eureka holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.embedded.instances import InstanceInfo, Listed

from .troubles import Call
from .truth import Ref
from .world import Key

OWNER = "prod"
UP, OUT = "UP", "OUT_OF_SERVICE"

State = dict[Key, Listed]
"""All that one Eureka server holds."""


class Violation(BaseException):
    """A promise that was broken. No part of the program can catch it."""

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
    """Whether a list was answered as it was a while ago; `kubernetes` is then that moment."""
    lists: dict[Call, float] = field(default_factory=dict)
    """The moment that each list of Kubernetes told of."""
    pods_listed: dict[str, float] = field(default_factory=dict)
    """By namespace, when the list of its pods began; under the empty name that of all."""
    looked: dict[Key, float] = field(default_factory=dict)
    """When each instance was last read uncached."""
    stood: set[Key] = field(default_factory=set)
    """What such a read showed."""
    looked_up: set[str] = field(default_factory=set)
    """UIDs of the pods of which such a read showed an instance UP, or put out of service."""
    looked_up_keys: set[Key] = field(default_factory=set)
    """The instances that such a read showed so."""
    brought: set[Key] = field(default_factory=set)
    """What it made UP."""
    taken: dict[Key, Ref] = field(default_factory=dict)
    """What it took out, or DOWN, and whose that was."""
    taken_pods: dict[Key, str] = field(default_factory=dict)
    """The UID of the pod that each of these stood for."""
    emptied: set[str] = field(default_factory=set)
    """Apps that went to nothing by what it took, and that might still have served."""
    emptied_by_deletion: set[str] = field(default_factory=set)
    """Apps that went to nothing because a person deletes their syncers."""
    serve_themselves: set[tuple[str, str]] = field(default_factory=set)
    """App and address of what an uncached read showed UP, and no installation of the program has written."""
    gave_way: dict[Key, Ref] = field(default_factory=dict)
    """What it took out, or DOWN, beside such an instance, and whose that was."""
    other_half: bool = False
    """Whether it is of the installation beside the program's, for the other team's syncers."""
    process: object | None = None
    """Whose pass it is: what one process remembers, another does not."""
    approved: str | None = None
    """The plan id that it was given."""
    troubled: bool = False
    troubled_cluster: bool = False
    """Whether a call to Kubernetes was struck, or answered by another cluster, or the program itself was struck."""
    strayed: bool = False
    """Whether another cluster told it of objects."""
    found_home: bool = False
    """Whether it asked again whose the address is after that, and the own cluster answered."""
    found_elsewhere: bool = False
    """Whether it asked whose the address is, and another cluster answered."""
    last_elsewhere: bool = False
    """Whether its last read of Kubernetes was answered by another cluster."""
    paused: bool = False
    stopped: bool = False
    """Whether it said that another owner serves its syncers, and did nothing else than renew."""
    writes: list[str] = field(default_factory=list)

    @property
    def moment(self) -> float:
        """What was true at this moment and stayed so, the pass must have seen."""
        if self.older and self.kubernetes is not None:
            return self.kubernetes
        return max(self.kubernetes if self.kubernetes is not None else self.begun, self.eureka or 0.0)

    @property
    def specs(self) -> float:
        """What syncers asked for at this moment, and later, the pass must have seen."""
        return self.lists.get(Call.SYNCERS, self.moment)


def syncer_of(instance: InstanceInfo) -> Ref:
    """Whose mark it bears."""
    namespace, _, name = instance.metadata.get("eurekube.syncer", "").partition("/")
    return namespace, name


def pod_of(instance: InstanceInfo) -> str:
    """The UID of the pod that it bears; empty for a Service's."""
    return str(instance.metadata.get("eurekube.pod", "").rpartition("/")[2])


def is_up(listed: Listed | None) -> bool:
    """Whether callers are sent there."""
    return status_of(listed) == UP


def status_of(listed: Listed | None) -> str:
    """Its status; nothing for nothing."""
    return listed[0].status.value if listed is not None else ""


def change(was: Listed, stands: Listed | None) -> str:
    """What became of it, in words."""
    if stands is None:
        return "cancelled"
    return f"written anew, {was[0].status.value} to {stands[0].status.value}"


def named(ref: Ref) -> str:
    """A syncer, for a sentence."""
    return "/".join(ref)
