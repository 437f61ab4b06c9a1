"""Makes a story of a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from . import events as e
from .addresses import with_addresses
from .ambiguous import with_an_ambiguous_port
from .asked import Asked
from .credentials import with_failing_credentials
from .crowds import with_a_crowd
from .elsewhere import with_another_cluster
from .entries import with_gateways, with_ingresses
from .flaps import with_a_flapping_app, with_a_flapping_list
from .heirs import with_an_heir
from .hostports import with_host_ports
from .hours import with_a_long_silence
from .imports.stories import with_cut_servers, with_imports
from .machines import with_machines
from .neighbours import with_neighbours
from .nodeports import with_node_ports
from .overrides import with_overrides
from .refusals import with_refused_registrations
from .returns import with_a_peer_that_returns
from .shares import with_a_share
from .sharing import with_shared_pods
from .starving import a_slow_stage
from .story import QUIET, Installation, Mode, Story, over
from .suspensions import with_a_lost_suspension
from .taken import with_taken_ids
from .teams import with_teams
from .troubles import (
    ALL_CALLS,
    EUREKA_CALLS,
    KUBERNETES_CALLS,
    USUAL_CALLS,
    Call,
    Kind,
    Trouble,
)
from .typos import with_a_broken_selector
from .unlisted import with_an_unlisted_deletion, with_refused_events
from .wishes import THEMES, WEIGHTED, random_wish, theme
from .world import FEW
from .writers import with_a_stray_slice

_KINDS = ((0.015, "slow"), (0.08, "paused"), (0.15, "outage"), (0.19, "two apps"), (1.0, ""))
"""Troubles of all calls in some stories: the highest chance, by kind. `one peer` is only in stories
that are asked for it."""


def _without_removals(base: Story) -> Story:
    """Makes the installation one that cancels nothing."""
    return replace(base, installation=replace(base.installation, upsert_only=True))


_FAMILIES: tuple[tuple[float, str, Callable[[Story], Story]], ...] = (
    (0.06, "another cluster", with_another_cluster),
    (0.07, "without removals", _without_removals),
    (0.08, "a long silence", with_a_long_silence),
    (0.10, "addresses", with_addresses),
    (0.12, "a lost suspension", with_a_lost_suspension),
    (0.135, "out of service", with_overrides),
    (0.15, "refused registrations", with_refused_registrations),
    (0.155, "a crowd", with_a_crowd),
    (0.18, "a peer that returns", with_a_peer_that_returns),
    (0.23, "teams", with_teams),
    (0.27, "neighbours", with_neighbours),
    (0.28, "shared gates", with_shared_pods),
    (0.29, "a share", with_a_share),
    (0.295, "a slow stage", a_slow_stage),
    (0.315, "taken ids", with_taken_ids),
    (0.335, "an heir", with_an_heir),
    (0.355, "machines", with_machines),
    (0.370, "a stray slice", with_a_stray_slice),
    (0.390, "an ambiguous port", with_an_ambiguous_port),
    (0.405, "credentials", with_failing_credentials),
    (0.420, "a flapping app", with_a_flapping_app),
    (0.435, "a flapping list", with_a_flapping_list),
    (0.450, "a broken selector", with_a_broken_selector),
    (0.465, "an unlisted deletion", with_an_unlisted_deletion),
    (0.475, "refused events", with_refused_events),
    (0.490, "host ports", with_host_ports),
    (0.505, "node ports", with_node_ports),
    (0.520, "ingresses", with_ingresses),
    (0.535, "gateways", with_gateways),
    (0.575, "imports", with_imports),
    (0.580, "cut servers", with_cut_servers),
)
"""Additions to some stories: the highest chance, by name."""


def families() -> tuple[str, ...]:
    """The subjects that are added to some random stories."""
    return tuple(name for _, name, _ in _FAMILIES)


def subjects() -> tuple[str, ...]:
    """The subjects that a story can be asked for; `""` for any."""
    kinds = (name for _, name in _KINDS)
    return tuple(sorted({*kinds, "one peer", *(name for _, name, _ in _FAMILIES), *THEMES}))


def story(seed: int, about: str = "") -> Story:
    """Gives the story of this seed, about this subject if one is given. It is always the same."""
    # Dice of their own: a seed's story is else what it was before there were such families.
    drawn = random.Random(f"families {seed}").random()
    for most, name, grown in _FAMILIES:
        if about == name or (not about and drawn < most):
            return replace(grown(_story(seed, "")), subject=name)
    return _story(seed, about)


def _story(seed: int, about: str) -> Story:
    chance = random.Random(seed)
    drawn = chance.random()
    kind = next(name for most, name in _KINDS if drawn < most)
    if about:
        kind = "" if about in THEMES else about
    if kind == "slow":
        return _slow(seed, chance)
    ends = chance.uniform(60, 240)
    installation = _installation(chance)
    apps = chance.sample(FEW, chance.choice((1, 2, 2, 3, 4)))
    happenings = list(_beginning(chance, apps))
    happenings += [_event(chance, apps, ends) for _ in range(chance.choice((1, 2, 4, 6, 9)))]
    troubles = [_trouble(chance, ends) for _ in range(chance.choice((0, 1, 2, 3, 4)))]
    for name in (
        [about] if about in THEMES else chance.choices(WEIGHTED, k=chance.choice((0, 1, 1, 2)))
    ):
        happenings += theme(name, chance, apps, ends)
    if chance.random() < 0.3:
        happenings += _flap(chance, apps, ends)
    if kind == "paused":
        troubles, more = _paused(chance, apps, ends)
        happenings += more
    elif kind == "outage":
        troubles, more = _outage(chance, apps, ends)
        happenings += more
    elif kind == "two apps":
        happenings += _two_apps(chance, apps, ends)
    elif kind == "one peer":
        installation = replace(installation, peers=2, batches=chance.random() < 0.7)
        away, more = _one_peer(chance, apps, ends)
        troubles, happenings = [*troubles, away], happenings + more
    ends = max(ends, over(happenings, troubles))
    happenings += _good_end(happenings, ends)
    return Story(
        seed=seed,
        installation=installation,
        events=tuple(sorted(happenings, key=lambda event: event.at)),
        troubles=tuple(troubles),
        ends=ends,
    )


def _slow(seed: int, chance: random.Random) -> Story:
    """Makes Eureka so slow that no pass ends. Each lease must still get its turn."""
    installation = Installation(mode=Mode.ONCE, interval=30, pass_seconds=30)
    begun = 65.0
    slow = Trouble(
        at=begun,
        until=begun + 900,
        calls=EUREKA_CALLS,
        kind=Kind.SLOW,
        seconds=round(chance.uniform(4, 7), 1),
    )
    happenings = tuple(_beginning(chance, list(FEW), least=2))
    return Story(
        seed=seed,
        installation=installation,
        events=happenings,
        troubles=(slow,),
        ends=over(happenings, (slow,)),
    )


def _installation(chance: random.Random) -> Installation:
    mode = chance.choice((Mode.DAEMON, Mode.DAEMON, Mode.ONCE, Mode.TWICE))
    interval = {Mode.DAEMON: 10.0, Mode.ONCE: 30.0, Mode.TWICE: 60.0}[mode]
    return Installation(
        mode=mode,
        interval=interval,
        peers=2 if chance.random() < 0.15 else 1,
        scoped=chance.random() < 0.3,
        batches=chance.random() < 0.3,
        halves=chance.random() < 0.15,
    )


def _beginning(chance: random.Random, apps: list[str], *, least: int = 1) -> list[e.Event]:
    found: list[e.Event] = []
    for app in apps:
        found.append(e.ServiceApplied(at=0.0, app=app))
        found.append(e.SyncerApplied(at=0.0, name=app, app=app))
        for number in range(max(least, chance.choice((1, 1, 2, 3)))):
            found.append(
                e.PodStarted(
                    at=0.0, app=app, number=number, ip=_ip(chance), ready=chance.random() < 0.9
                )
            )
    return found


def _ip(chance: random.Random) -> str:
    return f"10.0.0.{chance.randint(1, 6)}"


def _event(chance: random.Random, apps: list[str], ends: float) -> e.Event:
    at = round(chance.uniform(3, ends - QUIET), 1)
    app = chance.choice(apps)
    number = chance.randint(0, 2)
    who = chance.choice(("service", "itself", "owner", "owner", "cluster", "id"))
    ip = _ip(chance)
    choices: list[tuple[float, e.Event]] = [
        (3, e.PodStarted(at=at, app=app, number=number, ip=ip, ready=chance.random() < 0.8)),
        (3, e.PodEnds(at=at, app=app, number=number, grace=chance.choice((0.0, 0.0, 5.0, 20.0)))),
        (3, e.PodMoves(at=at, app=app, number=number, ip=ip)),
        (4, e.PodTurns(at=at, app=app, number=number, ready=chance.random() < 0.5)),
        (1.5, e.AllPodsTurn(at=at, ready=chance.random() < 0.3)),
        (2, e.SyncerDeleted(at=at, name=app, app=app)),
        (2, e.SyncerApplied(at=at, name=app, app=app)),
        (1.5, e.SyncerApplied(at=at, name=app, app=app, app_name=chance.choice(("fresh", app)))),
        (2, e.SyncerApplied(at=at, name=app, app=app, asked=random_wish(chance))),
        (1, e.SyncerApplied(at=at, name=app, app=app, asked=Asked(version=str(number)))),
        (
            1.5,
            e.SyncerApplied(
                at=at, name=f"{app}-next", app=app, app_name=chance.choice(("", "", "fresh"))
            ),
        ),
        (1, e.SyncerDeleted(at=at, name=f"{app}-next", app=app)),
        (1.5, e.ServiceDeleted(at=at, app=app)),
        (1.5, e.ServiceApplied(at=at, app=app)),
        (3, e.StrangerRegisters(at=at, who=who, app=app, ip=ip)),
        (1, e.StrangerLeaves(at=at, who=who, app=app, ip=ip)),
        (2, e.PersonOverrides(at=at, which=number)),
        (1.5, e.PersonReleases(at=at)),
        (1, e.EurekaRestarts(at=at, peer=number, warm_up=chance.choice((0.0, 0.0, 20.0)))),
        (
            2,
            e.ClockJumps(
                at=at,
                by=chance.choice((-3600.0, -20.0, 20.0, 3600.0, 3600.0)),
                lasts=chance.uniform(1, 90),
            ),
        ),
        (3, e.SecondCopyRuns(at=at)),
        (1, e.CrdDeleted(at=at, lasts=chance.uniform(5, 60), empty_for=chance.uniform(0, 30))),
    ]
    return chance.choices([event for _, event in choices], [weight for weight, _ in choices])[0]


def _good_end(happenings: list[e.Event], ends: float) -> list[e.Event]:
    """Ends what only a person can fix: another cluster with our owner's name, another owner of our
    syncers, a deleted CRD."""
    return [
        e.StrangerLeaves(at=ends - QUIET, who=event.who, app=event.app, ip=event.ip)
        for event in happenings
        if isinstance(event, e.StrangerRegisters) and event.who in ("cluster", "owner")
    ]


_EUREKA_KINDS = (
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
)
_KUBERNETES_KINDS = (*_EUREKA_KINDS, Kind.OLDER, Kind.OLDER, Kind.GONE_410)
_PROGRAM_KINDS = (
    Kind.KILL_BEFORE,
    Kind.KILL_AFTER,
    Kind.PAUSE_BEFORE,
    Kind.PAUSE_AFTER,
    Kind.STOP,
)


def _two_apps(chance: random.Random, apps: list[str], ends: float) -> list[e.Event]:
    """Makes two apps of the same pods, and a person puts one of their instances out of service."""
    app, at = chance.choice(apps), round(chance.uniform(3, ends - QUIET - 40), 1)
    return [
        e.SyncerApplied(at=at, name=f"{app}-next", app=app, app_name="fresh"),
        *(e.PersonOverrides(at=at + 20, which=number) for number in range(2)),
    ]


def _flap(chance: random.Random, apps: list[str], ends: float) -> list[e.Event]:
    """Makes a pod unready for a while."""
    app, number = chance.choice(apps), chance.randint(0, 1)
    down = chance.uniform(3, ends - QUIET - 2)
    up = chance.uniform(down, ends - QUIET)
    return [
        e.PodTurns(at=round(when, 1), app=app, number=number, ready=ready)
        for when, ready in ((down, False), (up, True))
    ]


def _paused(
    chance: random.Random, apps: list[str], ends: float
) -> tuple[list[Trouble], list[e.Event]]:
    """Pauses the program in the middle of a pass, until a second copy has done the work."""
    at = round(chance.uniform(5, ends - QUIET - 5), 1)
    lasts = round(chance.uniform(15, 60), 1)
    pause = Trouble(
        at=at,
        until=at + 15,
        calls=chance.choice((ALL_CALLS, frozenset({Call.LIST}), EUREKA_CALLS)),
        kind=chance.choice((Kind.PAUSE_BEFORE, Kind.PAUSE_AFTER)),
        skip=chance.choice((0, 0, chance.randint(1, 10))),
        strikes=1,
        seconds=lasts,
    )
    happenings: list[e.Event] = []
    for _ in range(chance.randint(1, 3)):
        app = chance.choice(apps)
        number = chance.randint(0, 2)
        when = round(at + chance.uniform(3, lasts / 2), 1)
        happenings.append(
            chance.choice(
                (
                    e.PodStarted(at=when, app=app, number=number, ip=_ip(chance)),
                    e.PodMoves(at=when, app=app, number=number, ip=_ip(chance)),
                    e.SyncerDeleted(at=when, name=app, app=app),
                    e.PodTurns(at=when, app=app, number=number, ready=chance.random() < 0.7),
                )
            )
        )
    seconds = [e.SecondCopyRuns(at=round(at + part * lasts, 1)) for part in (0.55, 0.75)]
    return [pause], [*happenings, *seconds]


def _outage(
    chance: random.Random, apps: list[str], ends: float
) -> tuple[list[Trouble], list[e.Event]]:
    """Makes the Kubernetes API fail while pods come and go, and Eureka loses its memory."""
    at = round(chance.uniform(5, ends - QUIET - 5), 1)
    until = at + round(chance.uniform(30, 90), 1)
    group = chance.choice(
        (
            KUBERNETES_CALLS,
            frozenset({Call.SLICES}),
            frozenset({Call.SERVICES}),
            frozenset({Call.SYNCERS}),
        )
    )
    kind = chance.choice(
        (Kind.TIMEOUT_BEFORE, Kind.FORBIDDEN, Kind.ERROR_503, Kind.CUT, Kind.PAGE, Kind.GONE_410)
    )
    outage = Trouble(at=at, until=until, calls=group, kind=kind)
    happenings: list[e.Event] = []
    for _ in range(chance.randint(1, 3)):
        app, number = chance.choice(apps), chance.randint(0, 2)
        when = round(chance.uniform(at, until), 1)
        happenings += [
            e.PodEnds(at=when, app=app, number=number),
            e.PodStarted(at=when + 5, app=app, number=number, ip=_ip(chance)),
        ]
    if chance.random() < 0.7:
        happenings.append(e.EurekaRestarts(at=round(chance.uniform(at + 5, until), 1)))
    return [outage], happenings


def _one_peer(chance: random.Random, apps: list[str], ends: float) -> tuple[Trouble, list[e.Event]]:
    """One of two Eureka servers is away while a syncer is deleted; soon nothing in the cluster
    names its instances."""
    app, at = chance.choice(apps), round(chance.uniform(5, ends - QUIET - 5), 1)
    away = Trouble(
        at=at,
        until=round(at + chance.uniform(10, 60), 1),
        calls=EUREKA_CALLS | {Call.OTHER},
        kind=chance.choice((Kind.REFUSED, Kind.TIMEOUT_BEFORE, Kind.ERROR_503)),
        peer=chance.choice((0, 1, 1)),
    )
    deleted = round(at + chance.uniform(-10, 20), 1)
    gone = deleted + round(chance.uniform(1, 40), 1)
    happenings: list[e.Event] = [
        e.SyncerDeleted(at=max(1.0, deleted), name=app, app=app),
        *(e.PodEnds(at=max(2.0, gone), app=app, number=number) for number in range(3)),
    ]
    if chance.random() < 0.5:
        happenings.append(e.ServiceDeleted(at=max(2.0, gone), app=app))
    return away, happenings


def _trouble(chance: random.Random, ends: float) -> Trouble:
    at = round(chance.uniform(0, ends - QUIET), 1)
    where = chance.random()
    if where < 0.3:
        return Trouble(
            at=at,
            until=ends - QUIET,
            calls=chance.choice(
                (ALL_CALLS, EUREKA_CALLS, frozenset({chance.choice(sorted(USUAL_CALLS))}))
            ),
            kind=chance.choice(_PROGRAM_KINDS),
            skip=chance.randint(0, 30),
            strikes=1,
            seconds=round(chance.choice((1, 20, 50, 100)) * chance.uniform(0.2, 1), 1),
        )
    group = EUREKA_CALLS if where < 0.65 else KUBERNETES_CALLS
    calls = (
        group if chance.random() < 0.3 else frozenset({chance.choice(sorted(group & USUAL_CALLS))})
    )
    kind = chance.choice(_EUREKA_KINDS if group is EUREKA_CALLS else _KUBERNETES_KINDS)
    lasting = chance.random() < 0.5
    return Trouble(
        at=at,
        until=round(min(ends - QUIET, at + chance.choice((20, 60, 200))), 1),
        calls=calls,
        kind=kind,
        skip=0 if lasting else chance.randint(0, 6),
        strikes=10**6 if lasting else chance.choice((1, 2, 3, 5)),
        seconds=round(chance.uniform(0.5, 12), 1) if kind in (Kind.SLOW, Kind.LATE) else 0.0,
    )
