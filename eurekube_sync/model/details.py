"""What a person wants to know of Pods and Services beside what a pass needs: why one is not ready, and what it selects.

Read only where somebody asks why: a pass decides without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCondition:
    type: str
    true: bool
    reason: str = ""
    message: str = ""
    since: float | None = None  # Unix seconds of its last transition


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDetail:
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    node: str = ""
    phase: str = ""
    terminating: bool = False
    conditions: tuple[PodCondition, ...] = ()
    waiting: tuple[str, ...] = ()  # why containers do not run, such as `app: CrashLoopBackOff`
    controller: str = ""  # what made it, such as `ReplicaSet rating-6c9f`; empty for a bare pod
    containers: tuple[str, ...] = ()
    grace: float = 30.0  # `terminationGracePeriodSeconds`
    pre_stops: tuple[float | None, ...] = ()
    """The seconds that each `preStop` sleeps; None for one whose time nobody can read."""

    def condition(self, type_: str) -> PodCondition | None:
        return next((one for one in self.conditions if one.type == type_), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What RBAC allows or does not."""

    verb: str
    resource: str  # with its subresource: `eurekasyncers/status`
    group: str = ""
    name: str = ""  # of the one object; empty for all

    def __str__(self) -> str:
        whole, slash, part = self.resource.partition("/")
        group, named = f".{self.group}" if self.group else "", f" {self.name}" if self.name else ""
        return f"{self.verb} {whole}{group}{slash}{part}{named}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSelector:
    """Which pods a Service selects; empty for one without a selector."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)  # its own
    selector: Mapping[str, str] = field(default_factory=dict)
