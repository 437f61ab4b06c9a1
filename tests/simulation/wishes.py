"""The specs of syncers in random stories, and the events that follow from them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from . import decisions as d
from . import events as e
from .asked import CREATE_ONLY, PLAIN, SYNC, UPSERT_ONLY, Asked, Limit
from .rollout import Rollout
from .story import QUIET
from .world import APPS, NAMESPACES


def random_limit(chance: random.Random) -> Limit:
    """Gives a limit near the size of small apps."""
    kind = chance.choice(("count", "count", "pods", "share"))
    if kind == "count":
        return Limit(kind=kind, value=chance.choice((0, 1, 1, 2, 3)))
    return Limit(kind=kind, value=chance.choice((0, 20, 34, 50, 50, 67, 100)))


def random_wish(chance: random.Random, *, gated: bool = False) -> Asked:
    """Gives one or two fields that a spec may set."""
    asked = PLAIN
    for _ in range(chance.choice((1, 1, 2))):
        asked = _with(chance, asked)
    return _gated(asked) if gated and chance.random() < 0.9 else asked


def _with(chance: random.Random, asked: Asked) -> Asked:
    match chance.choice(_FIELDS):
        case "limit":
            return replace(asked, limit=random_limit(chance))
        case "policy":
            return replace(asked, policy=chance.choice((UPSERT_ONLY, CREATE_ONLY, SYNC)))
        case "suspend":
            return replace(asked, suspend=True)
        case "not_ready":
            return replace(asked, not_ready="Cancel")
        case "terminating":
            return replace(asked, terminating="KeepWhileServing")
        case "on_duplicate":
            return replace(asked, on_duplicate="Warn")
        case "mode":
            return replace(asked, mode="service")
    return replace(asked, version=str(chance.randint(0, 2)))


_FIELDS = (
    *("limit", "limit", "limit", "policy", "policy", "suspend", "suspend"),
    *("not_ready", "terminating", "on_duplicate", "mode", "version"),
)


def _gated(asked: Asked) -> Asked:
    return replace(asked, readiness_gate=True, mode="pod")


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a story in which something may happen, and the apps to which it may."""

    chance: random.Random
    apps: list[str]
    ends: float

    def time(self, *, before: float = 0.0) -> float:
        """Gives a time in it, before its last seconds."""
        return round(self.chance.uniform(3, max(4.0, self.ends - QUIET - before)), 1)

    def app(self) -> str:
        """Gives one of the apps."""
        return self.chance.choice(self.apps)

    def ip(self) -> str:
        """Gives an address that other pods may have had."""
        return f"10.0.0.{self.chance.randint(1, 6)}"

    def pods(self, app: str, at: float, number: int = 3, *, gated: bool = False) -> list[e.Event]:
        """Gives events that start so many ready pods."""
        return [
            e.PodStarted(at=at, app=app, number=n, ip=self.ip(), gated=gated) for n in range(number)
        ]

    def some(self, app: str, at: float, lasts: float) -> list[e.Event]:
        """Gives an event of its pods or its Service within these seconds."""
        found: list[e.Event] = []
        for _ in range(self.chance.randint(1, 3)):
            when = round(at + self.chance.uniform(1, max(2.0, lasts)), 1)
            number = self.chance.randint(0, 2)
            found.append(
                self.chance.choice(
                    (
                        e.PodEnds(
                            at=when, app=app, number=number, grace=self.chance.choice((0.0, 5.0))
                        ),
                        e.PodMoves(at=when, app=app, number=number, ip=self.ip()),
                        e.PodTurns(
                            at=when, app=app, number=number, ready=self.chance.random() < 0.4
                        ),
                        e.PodStarted(at=when, app=app, number=number, ip=self.ip()),
                        e.ServiceDeleted(at=when, app=app),
                    )
                )
            )
        return found


def _limits(here: Stretch) -> list[e.Event]:
    """A limit is set, raised, lowered, taken away, while pods come and go."""
    app = here.app()
    changes: list[e.Event] = [
        e.SyncerApplied(
            at=here.time(),
            name=app,
            app=app,
            asked=Asked(limit=random_limit(here.chance)) if n < 3 else PLAIN,
        )
        for n in range(here.chance.randint(1, 4))
    ]
    return [*here.pods(app, 0.0), *changes, *here.some(app, here.time(before=30), 30)]


def _suspended(here: Stretch) -> list[e.Event]:
    """A syncer is suspended for a while, whatever happens meanwhile."""
    app, at = here.app(), here.time(before=40)
    lasts = here.chance.uniform(10, 40)
    found: list[e.Event] = [
        e.SyncerApplied(at=at, name=app, app=app, asked=Asked(suspend=True)),
        *here.some(app, at, lasts),
    ]
    if here.chance.random() < 0.4:
        found.append(e.EurekaRestarts(at=round(at + lasts / 2, 1)))
    if here.chance.random() < 0.6:
        found.append(e.SyncerApplied(at=round(at + lasts, 1), name=app, app=app))
    return found


def _policies(here: Stretch) -> list[e.Event]:
    """A syncer that cancels nothing, pods that go, and then perhaps the syncer itself."""
    app, at = here.app(), here.time(before=30)
    asked = Asked(policy=here.chance.choice((UPSERT_ONLY, CREATE_ONLY)))
    found: list[e.Event] = [
        e.SyncerApplied(at=here.chance.choice((0.5, at)), name=app, app=app, asked=asked)
    ]
    found += here.some(app, at, 20)
    later = here.time()
    after = here.chance.random()
    if after < 0.4:
        found.append(e.SyncerDeleted(at=later, name=app, app=app))
    elif after < 0.7:
        found.append(
            e.SyncerApplied(at=later, name=app, app=app, asked=replace(asked, version="2"))
        )
    elif after < 0.8:
        found.append(e.SyncerApplied(at=later, name=app, app=app))
    return found


def _held(here: Stretch) -> list[e.Event]:
    """So many instances go at once that their removals are held, and a person looks."""
    at = here.time(before=60)
    found: list[e.Event] = [
        here.chance.choice(
            (
                e.AllPodsTurn(at=at, ready=False),
                *(
                    d.NamespaceDeleted(at=at, namespace=name, lasts=here.chance.uniform(5, 40))
                    for name in NAMESPACES
                ),
            )
        )
    ]
    later = round(at + here.chance.uniform(3, 50), 1)
    lasts = here.chance.choice((20.0, 600.0, 3500.0, 7200.0, 86_400.0, -5.0))
    asked = here.chance.choice((0.0, 0.3, 0.9))
    found += [
        d.RemovalsReleased(at=later, name=app, app=app, lasts=lasts)
        for app in here.apps
        if here.chance.random() < asked
    ]
    if here.chance.random() < 0.7:
        later = round(at + here.chance.uniform(11, 50), 1)
        found.append(d.PlanReleased(at=later, late=here.chance.choice((0.0, 0.0, 8.0))))
        found += here.some(here.app(), later, 8)
    return found


def _namespaces(here: Stretch) -> list[e.Event]:
    """A namespace is deleted with all that is in it, and its apps are deployed again."""
    app, at = here.app(), here.time(before=60)
    lasts = here.chance.uniform(3, 60)
    again = round(at + lasts + here.chance.uniform(0.1, 20), 1)
    found: list[e.Event] = [d.NamespaceDeleted(at=at, namespace=APPS[app], lasts=lasts)]
    if here.chance.random() < 0.7:
        found += [e.ServiceApplied(at=again, app=app), e.SyncerApplied(at=again, name=app, app=app)]
        found += here.pods(app, again, 1)
    if here.chance.random() < 0.5:
        found.append(d.RemovalsReleased(at=round(at - 1, 1), name=app, app=app, lasts=600))
    return found


def _gates(here: Stretch) -> list[e.Event]:
    """An app whose pods wait for Eureka, and a rolling update of it."""
    app = here.app()
    asked = (
        _gated(random_wish(here.chance))
        if here.chance.random() < 0.4
        else Asked(readiness_gate=True)
    )
    found: list[e.Event] = [e.SyncerApplied(at=0.0, name=app, app=app, asked=asked)]
    found += here.pods(app, 0.0, here.chance.randint(1, 3), gated=True)
    if here.chance.random() < 0.7:
        grace = here.chance.choice((0.0, 5.0))
        found.append(
            Rollout(at=here.time(before=60), app=app, ip=here.ip(), gated=True, grace=grace)
        )
    found += here.some(app, here.time(before=20), 20)
    return found


def _duplicates(here: Stretch) -> list[e.Event]:
    """A pod's own Eureka client registers it as well."""
    app, ip = here.app(), here.ip()
    warns = Asked(on_duplicate=here.chance.choice(("Warn", "Warn", "Skip")))
    at = here.time(before=20)
    dice = random.Random(f"its host {app} {ip} {at}")
    found: list[e.Event] = [
        e.SyncerApplied(at=0.0, name=app, app=app, asked=warns),
        e.StrangerRegisters(at=at, who="itself", app=app, ip=ip, by_name=dice.random() < 0.4),
        e.PodStarted(at=here.time(), app=app, number=2, ip=ip),
    ]
    dice = random.Random(
        f"its client {app} {ip} {at}"
    )  # of their own: what follows is what it was without them
    if dice.random() < 0.4:
        turns = round(at + dice.uniform(0, 15), 1)
        found.append(e.ClientTurns(at=turns, app=app, ip=ip, up=False))
        if dice.random() < 0.5:
            found.append(
                e.ClientTurns(at=round(turns + dice.uniform(1, 60), 1), app=app, ip=ip, up=True)
            )
    if dice.random() < 0.3:
        ended = round(at + dice.uniform(0, 40), 1)
        found.append(e.ClientEnds(at=ended, app=app, ip=ip))
        if warns.on_duplicate == "Warn":
            skips = Asked(on_duplicate="Skip")
            found.append(
                e.SyncerApplied(
                    at=round(ended + dice.uniform(1, 120), 1), name=app, app=app, asked=skips
                )
            )
    return found


def _abandoned(here: Stretch) -> list[e.Event]:
    """A person deletes a syncer and does not wait, or abandons one that nobody deletes."""
    app, at = here.app(), here.time(before=30)
    found: list[e.Event] = [
        d.DeletionAbandoned(at=round(at + here.chance.uniform(-5, 30), 1), name=app, app=app)
    ]
    if here.chance.random() < 0.8:
        found.append(e.SyncerDeleted(at=at, name=app, app=app))
    return found


def _last_breaths(here: Stretch) -> list[e.Event]:
    """Pods that serve until their end, because their syncer asks for that."""
    app = here.app()
    found: list[e.Event] = [
        e.SyncerApplied(at=0.5, name=app, app=app, asked=Asked(terminating="KeepWhileServing"))
    ]
    for number in range(here.chance.randint(1, 3)):
        at = here.time(before=30)
        found.append(
            e.PodEnds(at=at, app=app, number=number, grace=here.chance.choice((12.0, 30.0)))
        )
        if here.chance.random() < 0.3:
            found.append(e.PodTurns(at=at + 6, app=app, number=number, ready=False))
    return found


def _services(here: Stretch) -> list[e.Event]:
    """A Service is the instance, and its pods only answer behind it."""
    app = here.app()
    asked = Asked(mode="service", not_ready=here.chance.choice(("Down", "Cancel")))
    return [
        e.SyncerApplied(at=here.chance.choice((0.0, here.time())), name=app, app=app, asked=asked),
        *here.some(app, here.time(before=30), 30),
        *here.some(app, here.time(before=30), 30),
    ]


THEMES: Mapping[str, Callable[[Stretch], list[e.Event]]] = {
    "limits": _limits,
    "suspended": _suspended,
    "policies": _policies,
    "held": _held,
    "namespaces": _namespaces,
    "gates": _gates,
    "duplicates": _duplicates,
    "abandoned": _abandoned,
    "last breaths": _last_breaths,
    "services": _services,
}
"""The subjects of stories, by name."""
WEIGHTED = (*THEMES, "limits", "limits", "suspended", "policies", "held", "held", "gates")
"""How often random stories are about each."""


def theme(name: str, chance: random.Random, apps: list[str], ends: float) -> list[e.Event]:
    """Gives the events of one subject."""
    return THEMES[name](Stretch(chance, apps, ends))
