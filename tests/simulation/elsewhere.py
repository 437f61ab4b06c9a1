"""Another cluster behind our address: its objects, when the address leads there, and stories about
it.

As with a kubeconfig that is read again, or a name that is given to a rebuilt cluster. A process
that has learned whom it serves follows; one that has not is another cluster's program, and none of
these stories.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .asked import PLAIN, Asked
from .events import Event
from .story import QUIET, Story
from .truth import FINALIZER
from .wishes import random_wish
from .world import APPS, FEW, World, service_manifest, syncer_manifest, syncer_path

if TYPE_CHECKING:
    from .stage import Stage

_WITHOUT_END = 10**6
_REVISION = 10**6
"""Where the other cluster's resource versions begin, as those of two real clusters differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """An app of the other cluster, under a name that ours may also have."""

    app: str
    ips: tuple[str, ...]
    asked: Asked = PLAIN
    app_name: str = ""
    served: bool = True
    """Whether its Service exists."""
    deleting: bool = False
    """Whether its syncer is being deleted, and waits for the program of its own cluster."""
    gated: bool = False

    def build(self, world: World) -> None:
        """Creates its objects in the other cluster."""
        spec: dict[str, object] = {
            "selector": {"app": self.app},
            "appName": self.app_name or self.app,
        }
        manifest = dict(syncer_manifest(self.app, self.app, spec | self.asked.written()))
        if self.deleting:
            manifest["metadata"] = {**manifest["metadata"], "finalizers": [FINALIZER]}
        world.apply("apis/eurekube.io/v1/eurekasyncers", manifest)
        if self.served:
            world.apply("api/v1/services", service_manifest(self.app))
        for number, ip in enumerate(self.ips):
            world.start_pod(self.app, f"{self.app}-{number}", ip, ready=True, gated=self.gated)
        if self.deleting:
            world.delete(syncer_path(APPS[self.app], self.app))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressLeadsElsewhere(Event):
    """After `skip` more calls, another cluster answers the program's calls to Kubernetes, for some
    seconds or a number of calls, whichever ends first."""

    lasts: float
    twins: tuple[Twin, ...]
    skip: int = 0
    calls: int = _WITHOUT_END
    crd: bool = True
    """Whether the other cluster has the CRD."""

    @property
    def over(self) -> float:
        return self.at + self.lasts

    def happen(self, stage: Stage) -> str:
        if stage.world.address.elsewhere is not None:
            return ""
        other = World(stage.clock, peers=0, seed=-1 - stage.story.seed, revision=_REVISION)
        for twin in self.twins:
            twin.build(other)
        if not self.crd:
            other.delete_crd()
        stage.world.address.lead(other, skip=self.skip, calls=self.calls)
        stage.clock.at(stage.clock.time + self.lasts, lambda: self._back(stage, other))
        names = ", ".join(twin.app for twin in self.twins) or "nothing"
        return (
            f"the Kubernetes address leads to another cluster, which has {names}, after "
            f"{self.skip} calls more"
        )

    def _back(self, stage: Stage, other: World) -> None:
        if stage.world.address.elsewhere is other:
            stage.world.address.lead_home()
            stage.happened("the Kubernetes address leads home again")


def with_another_cluster(base: Story) -> Story:
    """Adds an address that leads elsewhere for a while, once or more often."""
    dice = random.Random(f"another cluster {base.seed}")
    last = base.ends - QUIET
    events = list(base.events)
    for _ in range(dice.choice((1, 1, 2, 3))):
        at = round(dice.uniform(2, last - 1), 1)
        lasts = round(min(last - at, dice.choice((2, 12, 25, 60, 150)) * dice.uniform(0.3, 1)), 1)
        moved = AddressLeadsElsewhere(
            at=at,
            lasts=lasts,
            twins=tuple(_twin(dice, app) for app in FEW if dice.random() < 0.5),
            skip=dice.choice((0, 0, dice.randint(1, 14))),
            calls=dice.choice((_WITHOUT_END, _WITHOUT_END, _WITHOUT_END, dice.randint(1, 12))),
            crd=dice.random() < 0.9,
        )
        events.append(moved)
    return replace(base, events=tuple(sorted(events, key=lambda event: event.at)))


def _twin(dice: random.Random, app: str) -> Twin:
    gated = dice.random() < 0.2
    return Twin(
        app=app,
        ips=tuple(f"10.0.0.{dice.randint(1, 6)}" for _ in range(dice.choice((0, 1, 2, 3)))),
        asked=random_wish(dice, gated=gated) if gated or dice.random() < 0.4 else PLAIN,
        app_name=dice.choice(("", "", "", "fresh")),
        served=dice.random() < 0.8,
        deleting=dice.random() < 0.2,
        gated=gated,
    )
