"""Stories of imports: apps of the data centre that the cluster calls, beside those that it
exports."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tests.simulation import events as e
from tests.simulation.asked import PLAIN
from tests.simulation.story import QUIET, Mode, Story, over
from tests.simulation.troubles import (
    EUREKA_CALLS,
    IMPORT_CALLS,
    KUBERNETES_CALLS,
    Call,
    Kind,
    Trouble,
)
from tests.simulation.world import APPS, NAMESPACES

from . import data_centre as dc
from . import wishes as w

NETWORKS = (dc.NETWORK,)
WITH_PODS = (dc.NETWORK, "10.0.0.0/24")
"""Networks that a person named by mistake, with that of the pods."""
_APPS = ("review", "order", "user")
"""Apps that are only in the data centre."""
_OUTSIDE = "172.16.0.9"
_FLAPS = 160.0
"""Seconds for which a list flaps."""
_KINDS = (
    Kind.TIMEOUT_BEFORE,
    Kind.TIMEOUT_AFTER,
    Kind.LATE,
    Kind.REFUSED,
    Kind.RESET_AFTER,
    Kind.ERROR_503,
    Kind.ERROR_500_AFTER,
    Kind.FORBIDDEN,
    Kind.EMPTY,
    Kind.CUT,
    Kind.PAGE,
    Kind.SLOW,
    Kind.OLDER,
    Kind.OLDER,
    Kind.GONE_410,
    Kind.KILL_BEFORE,
    Kind.KILL_AFTER,
    Kind.PAUSE_BEFORE,
    Kind.PAUSE_AFTER,
    Kind.STOP,
)


def with_imports(base: Story) -> Story:
    """Adds a data centre, imports of its apps, and what happens to them."""
    dice = random.Random(f"imports {base.seed}")
    networks = WITH_PODS if dice.random() < 0.25 else NETWORKS
    installation = replace(
        base.installation,
        networks=networks,
        granted=dice.random() < 0.2,
        peers=2 if dice.random() < 0.3 else base.installation.peers,
        upsert_only=dice.random() < 0.05,
    )
    moving = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    apps = dice.sample(_APPS, dice.choice((1, 2, 3)))
    if dice.random() < 0.4:
        apps.append(moving)
    ends = base.ends
    events = [*base.events, *_beginning(dice, apps, moving)]
    for _ in range(dice.choice((1, 2, 4, 6, 9))):
        events.append(_event(dice, apps, moving, ends))
    if dice.random() < 0.3:
        fills = _restart(dice, ends)
        events.append(fills)
        events += _down_after(base.seed, fills, apps, ends)
    if dice.random() < 0.25:
        events += _move(dice, moving, ends)
    troubles = [*base.troubles]
    for _ in range(dice.choice((0, 0, 1, 2))):
        troubles.append(_trouble(dice, ends))
    flaps = random.Random(f"flapping lists of imports {base.seed}")
    if base.installation.mode is Mode.DAEMON and flaps.random() < 0.1:
        stops = dc.AppStops(at=round(base.ends - QUIET, 1), app=apps[0])
        events.append(stops)
        troubles += _flapping_list(flaps, stops.at, base.installation.interval)
    return replace(
        base,
        installation=installation,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
        ends=max(ends, over(events, troubles)),
    )


def with_cut_servers(base: Story) -> Story:
    """Adds an app that only one of two Eureka servers knows after a while. The server cannot be
    listed then, or restarts."""
    dice = random.Random(f"cut servers {base.seed}")
    imported = with_imports(base)
    app = "apart"
    home = dice.choice((0, 1))
    cut = round(dice.uniform(5, 30), 1)
    events = [
        *imported.events,
        *(
            dc.InstanceStarts(
                at=0.0, app=app, number=number, address=f"10.20.1.{number}", home=home
            )
            for number in range(dice.choice((1, 2, 3)))
        ),
        w.ImportApplied(at=0.0, namespace=dice.choice(NAMESPACES), name=app),
        dc.ServersAreCut(at=cut, app=app, lasts=dice.choice((100.0, 300.0, 500.0))),
    ]
    troubles = list(imported.troubles)
    alone = cut + 200 + round(dice.uniform(0, 60), 1)
    what = dice.choice(("restart", "away", ""))
    if what == "restart":
        events.append(dc.EurekaFillsUp(at=alone, lasts=dice.uniform(60, 200), peer=home))
    elif what == "away":
        kind = dice.choice((Kind.REFUSED, Kind.ERROR_503, Kind.PAGE))
        away = Trouble(at=cut, until=alone + 90, calls=EUREKA_CALLS, kind=kind, peer=home)
        troubles.append(away)
    events += _taken_apart(base.seed, alone)
    return replace(
        imported,
        installation=replace(imported.installation, peers=2, upsert_only=False),
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
        ends=max(imported.ends, over(events, troubles)),
    )


def _taken_apart(seed: int, alone: float) -> Iterator[e.Event]:
    """A slice of the cluster gets the address of an instance that only one server knows."""
    dice = random.Random(f"taken apart {seed}")
    if dice.random() < 0.4:
        yield w.ForeignService(
            at=alone + round(dice.uniform(5, 60), 1),
            namespace=dice.choice(NAMESPACES),
            name="beside",
            address="10.20.1.0",
        )


def _beginning(dice: random.Random, apps: list[str], moving: str) -> list[e.Event]:
    events: list[e.Event] = []
    if dice.random() < 0.9:
        events.append(dc.ElderStarts(at=0.0))
    for number, app in enumerate(apps):
        count = 13 if dice.random() < 0.1 else dice.choice((1, 1, 2, 3))
        events += [_start(dice, app, number * 20 + one + 1, 0.0, one) for one in range(count)]
        events.append(_import(dice, app, moving, 0.0))
        if dice.random() < 0.15:  # a second import of the same Service
            second = _import(dice, app, moving, 0.0)
            events.append(replace(second, name=f"{second.name}-too", service=app))
    if dice.random() < 0.15:
        service = dice.choice([app for app in apps if app != moving] or ["theirs"])
        events.append(w.ForeignService(at=0.0, namespace=dice.choice(NAMESPACES), name=service))
    return events


def _start(dice: random.Random, app: str, last: int, at: float, number: int) -> dc.InstanceStarts:
    return dc.InstanceStarts(
        at=at,
        app=app,
        number=number,
        address=_OUTSIDE if dice.random() < 0.05 else f"10.20.0.{last}",
        port=dice.choice((8080, 8080, 8081)),
        zone=dice.choice("aab"),
        home=dice.choice((0, 0, 1)),
    )


def _import(dice: random.Random, app: str, moving: str, at: float) -> w.ImportApplied:
    zones = ("a",) if dice.random() < 0.15 else ()
    if app == moving:  # it is in the cluster, too
        adopts = dice.random() < 0.6
        return w.ImportApplied(
            at=at,
            namespace=APPS[app],
            name=app if adopts else f"{app}-there",
            app=app,
            service=app if adopts else "",
            adopt=adopts,
            zones=zones,
            team=dice.choice(("one", "one", "two")),
        )
    return w.ImportApplied(
        at=at,
        namespace=NAMESPACES[sum(map(ord, app)) % 2],
        name=app,
        vip=app if dice.random() < 0.2 else "",
        port=dice.choice((0, 0, 8000)),
        zones=zones,
        suspend=dice.random() < 0.05,
        team=dice.choice(("one", "one", "two")),
    )


def _event(dice: random.Random, apps: list[str], moving: str, ends: float) -> e.Event:
    at = round(dice.uniform(3, ends - QUIET), 1)
    app = dice.choice(apps)
    number = dice.randint(0, 2)
    place = apps.index(app) * 20 + dice.randint(1, 6)
    import_ = _import(dice, app, moving, at)
    theirs = app if app != moving else "theirs"
    where = {"namespace": import_.namespace, "name": import_.name}
    edit = dice.choice(("deleted", "added", "emptied", "service", "port", "manager"))
    change = dice.choice(("deleted", "deleted", "ports", "label"))
    cancels = dice.random() < 0.7
    choices: list[tuple[float, e.Event]] = [
        (3, _start(dice, app, place, at, number)),
        (3, dc.InstanceStops(at=at, app=app, number=number, cancels=cancels)),
        (2, dc.AppStops(at=at, app=app, but=dice.choice((0, 0, 1)), cancels=cancels)),
        (4, dc.InstanceTurns(at=at, app=app, number=number, up=dice.random() < 0.4)),
        (3, dc.InstanceMoves(at=at, app=app, number=number, address=f"10.20.0.{place}", port=8081)),
        (2, dc.ServersAreCut(at=at, app=app, lasts=dice.uniform(10, 150))),
        (2, import_),
        (1, replace(import_, zones=("b",))),
        (1.5, replace(import_, suspend=dice.random() < 0.5)),
        (2, w.ImportDeleted(at=at, **where)),
        (0.5, w.ImportAbandoned(at=at, **where)),
        (1, w.EndpointsReleased(at=at, by_plan=dice.random() < 0.6)),
        (1, w.GrantChanges(at=at, namespace=import_.namespace, granted=dice.random() < 0.5)),
        (1.5, w.ForeignService(at=at, namespace=import_.namespace, name=theirs)),
        (1, w.ForeignService(at=at, namespace=import_.namespace, name=theirs, gone=True)),
        (
            1,
            w.ForeignService(
                at=at, namespace=import_.namespace, name="theirs", address=f"10.20.0.{place}"
            ),
        ),
        (2, w.OurServiceChanges(at=at, which=number, how=change, app=moving)),
        (3, w.OurSliceChanges(at=at, which=number, how=edit)),
        (1, w.ImportCrdDeleted(at=at, lasts=dice.uniform(5, 60), empty_for=dice.uniform(0, 30))),
    ]
    return dice.choices([event for _, event in choices], [weight for weight, _ in choices])[0]


def _restart(dice: random.Random, ends: float) -> dc.EurekaFillsUp:
    """Eureka restarts empty, and fills up; meanwhile instances end or come."""
    at = round(dice.uniform(10, ends - QUIET), 1)
    return dc.EurekaFillsUp(
        at=at,
        lasts=round(dice.choice((20, 90, 200)) * dice.uniform(0.5, 1), 1),
        warm_up=dice.choice((0.0, 0.0, 20.0)),
        peer=dice.choice((0, 1)),
    )


def _down_after(
    seed: int, fills: dc.EurekaFillsUp, apps: list[str], ends: float
) -> Iterator[e.Event]:
    """An instance is back in Eureka, and turns DOWN before a list has shown it UP."""
    dice = random.Random(f"down after a restart {seed}")
    at = fills.at + round(dice.uniform(30, 65), 1)
    if at < ends - QUIET:
        yield dc.InstanceTurns(at=at, app=dice.choice(apps), number=0, up=False)


def _move(dice: random.Random, app: str, ends: float) -> list[e.Event]:
    """An app moves from the data centre into the cluster: instances end while pods come."""
    begins = round(dice.uniform(5, ends - QUIET - 30), 1)
    events: list[e.Event] = [
        w.ImportApplied(at=begins, namespace=APPS[app], name=app, app=app, service=app, adopt=True)
    ]
    for number in range(dice.choice((1, 2, 3))):
        later = begins + 5.0 * number
        events.append(e.PodStarted(at=later, app=app, number=10 + number, ip="10.0.0.30"))
        events.append(dc.InstanceStops(at=later + 3, app=app, number=number))
    events.append(e.SyncerApplied(at=begins, name=app, app=app, asked=PLAIN))
    if dice.random() < 0.5:
        events.append(w.ImportDeleted(at=begins + 25, namespace=APPS[app], name=app))
    return events


def _flapping_list(dice: random.Random, stops: float, step: float) -> Iterator[Trouble]:
    """A list that imports need fails in every second pass, from when an app stops."""
    calls = frozenset({dice.choice((Call.IMPORTS, Call.SERVICES, Call.SLICES))})
    kind = dice.choice((Kind.ERROR_503, Kind.FORBIDDEN, Kind.CUT, Kind.TIMEOUT_BEFORE))
    at = round(stops + dice.uniform(0, 2 * step), 1)
    while at < stops + _FLAPS:
        yield Trouble(at=at, until=round(at + step, 1), calls=calls, kind=kind)
        at = round(at + 2 * step, 1)


def _trouble(dice: random.Random, ends: float) -> Trouble:
    at = round(dice.uniform(0, ends - QUIET), 1)
    kind = dice.choice(_KINDS)
    lasting = dice.random() < 0.4 and not kind.of_the_program
    calls = dice.choice(
        (
            IMPORT_CALLS,
            KUBERNETES_CALLS,
            EUREKA_CALLS,
            frozenset({Call.LIST}),
            *(frozenset({call}) for call in (*sorted(IMPORT_CALLS), Call.SLICES, Call.SERVICES)),
            frozenset({Call.STATUS}),
            frozenset({Call.FINALIZER}),
            frozenset({Call.DEFINITION}),
        )
    )
    if kind is Kind.OLDER:
        calls = calls - EUREKA_CALLS or IMPORT_CALLS
    return Trouble(
        at=at,
        until=round(min(ends - QUIET, at + dice.choice((20, 60, 200))), 1),
        calls=calls,
        kind=kind,
        skip=0 if lasting else dice.randint(0, 6),
        strikes=10**6 if lasting else 1 if kind.of_the_program else dice.choice((1, 2, 3, 5)),
        seconds=round(dice.uniform(0.5, 12), 1)
        if kind in (Kind.SLOW, Kind.LATE)
        else round(dice.uniform(5, 60), 1)
        if kind.of_the_program
        else 0.0,
        peer=dice.choice((None, None, 0, 1)),
    )
