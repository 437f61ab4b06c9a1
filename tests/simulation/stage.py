"""Where a story is played: the world, the judge and the copies of the program, on one clock.

quiet       the pass after the rest sends only reads and renewals
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.deadline import TimeLimit

from .clock import MachineClock, VirtualClock
from .copies import PERIOD, Process
from .events import Event
from .judge import Judge
from .rest import Rest
from .story import Mode, Story
from .view import OWNER, PassView, Violation, status_of
from .wire import Killed, Troubles, Wire
from .world import APPS, PORT, Key, Stranger, World

_APART = 41.0
"""Seconds between the two good passes after which everything has to be at rest."""
_PATIENCE = 600.0
"""Seconds after a story's end in which three good passes must have come."""
_OTHER_HALF = 14.0
"""Seconds between two passes of the other half of an installation."""
_OTHER_HALF_LATER = 28.0
"""Seconds by which its first good pass may begin later, so that its next one sees its own writes in
a list."""
_PEERS_PATIENCE = 1300.0
_SWEPT_AFTER = 600.0
"""Seconds in which a sweep finds an instance that only one of two servers has; sweeps are at most
ten minutes apart."""
_LIST_IS_OLD = 31.0
"""Seconds after which Eureka's list shows what a pass changed."""
_SIGHT_LASTS = 20.0 + 600.0
"""Seconds after which a status no longer says that a held removal was seen before."""


@dataclass(slots=True)
class Progress:
    """How far the end of the story has come."""

    first: float | None = None
    """When the first good pass after the last trouble began."""
    alike: float | None = None
    """When the first of those passes began after which the Eureka servers hold the same."""
    judged: float | None = None
    """When the last pass began by which the rest was judged."""
    changed: bool = False
    """Whether that pass changed an instance of ours. An import tells of the list that a pass begins
    with, so the next pass may tell of that change."""
    done: bool = False


@dataclass
class Stage:
    """Plays one story."""

    story: Story
    telling: bool = False
    clock: VirtualClock = field(init=False)
    world: World = field(init=False)
    judge: Judge = field(init=False)
    tale: list[tuple[float, str]] = field(default_factory=list)
    passes: int = 0
    calls: int = 0

    def __post_init__(self) -> None:
        self.clock = VirtualClock()
        self.world = World(
            self.clock,
            peers=self.story.installation.peers,
            seed=self.story.seed,
            drains=self.story.installation.drains,
            granted=self.story.installation.granted,
            imports=bool(self.story.installation.networks),
        )
        self.judge = Judge(self.world, self.story)
        self._chance = random.Random(self.story.seed)
        self._machine = MachineClock(self.clock)
        self.digest = hashlib.sha256()
        self._troubles = Troubles(self.story.troubles)
        if self.story.subject:
            self.judge.reached[f"a story about {self.story.subject}"] += 1
        self._rest = Progress()
        self._changed = -inf
        """When the last pass that changed an instance began."""
        self._status_writes: dict[str, float] = {}
        """When each status was last written."""
        self._second: Process | None = None
        self._second_runs = False
        for event in self.story.events:
            self.clock.at(event.at, lambda event=event: self._happen(event))  # type: ignore[misc]
        if self.story.installation.halves:
            self.clock.at(1.0, self._run_other_half)

    def play(self) -> None:
        """Plays the story from its beginning to the verdict; raises Violation."""
        patience = _PATIENCE if self.story.installation.peers == 1 else _PEERS_PATIENCE
        while True:
            begun = self.clock.time
            if begun > self.story.ends + patience:
                raise Violation("rest", "the program never came to three good passes")
            self._machine.stopped = False
            process = self._process(
                "the program", self._machine, self._troubles, self._pass_over, first=True
            )
            try:
                process.run()
            except Killed:
                self.happened("the program is killed")
            self.calls += process.wire.calls
            if self._rest.done:
                return
            self._wait_for_the_next(begun)

    def _wait_for_the_next(self, begun: float) -> None:
        """Waits until the next process starts: after a crash some seconds, for a CronJob until its
        next minute."""
        mode, now = self.story.installation.mode, self.clock.time
        if mode is Mode.DAEMON:
            self.clock.advance(3.0)
        else:
            every = 60.0 if mode is Mode.TWICE else self.story.installation.interval
            self.clock.advance(max(0.5, begun + every - now))
        if self.clock.time - now > 45:
            self.judge.not_calm()

    # --- What events use --------------------------------------------------------------------------

    def happened(self, what: str) -> None:
        """Adds a line to the tale, and lets the judge look."""
        self.judge.world_changed()
        if self.telling and what:
            self.tale.append((self.clock.time, what))

    def is_ours(self, key: Key, peer: int = 0) -> bool:
        """Whether an instance of ours is registered under the key."""
        found = self.world.standing(peer).get(key)
        return found is not None and self.judge.ours(found)

    def one_of_ours(self, which: int) -> Key | None:
        """Gives some registered instance of ours."""
        ours = sorted(
            key for key, listed in self.world.standing(0).items() if self.judge.ours(listed)
        )
        return ours[which % len(ours)] if ours else None

    def stranger(self, who: str, app: str, ip: str) -> Stranger:
        """Gives the stranger of that description; see `events.StrangerRegisters`."""
        name, namespace = app.upper(), APPS[app]
        ours = self.judge.truth.key(namespace, app, ip)
        marks = {
            "eurekube.syncer": f"{namespace}/{app}",
            "eurekube.owner": OWNER,
            "eurekube.cluster": self.judge.cluster,
        }
        match who:
            case "service":
                return Stranger(key=Key(name, f"dc-{ip}:{app}:{PORT}"), ip=f"192.168{ip[4:]}")
            case "itself":
                return Stranger(key=Key(name, f"{ip}:{app}:{PORT}"), ip=ip)
            case "owner":
                key = Key(name, ours.id.replace(OWNER, "other", 1))
                return Stranger(
                    key=key, ip=ip, metadata=tuple((marks | {"eurekube.owner": "other"}).items())
                )
            case "cluster":
                key = self.judge.truth.key(namespace, app, f"10.9{ip[4:]}")
                return Stranger(
                    key=key,
                    ip=f"10.9{ip[4:]}",
                    metadata=tuple((marks | {"eurekube.cluster": "else"}).items()),
                )
        return Stranger(key=ours, ip=ip)

    def set_wall_clock(self, wrong_by: float) -> None:
        """Sets the wall clock of the program's machine."""
        self._machine.wrong_by = wrong_by
        self.judge.clock_is_wrong(wrong_by)

    def run_approving(self, plan_id: str) -> str:
        """Makes a person's single pass that should release a plan id."""
        # A pass that was killed after it had told of its plan id, or is paused, has given no report
        # of what it holds.
        unknown = plan_id not in self.judge.releases.sets
        if self._second_runs or unknown:
            return ""
        self._second_runs = True
        try:
            machine = MachineClock(self.clock)
            first = self._process(
                "the approving one", machine, None, self._another_pass_over, first=True
            )
            report = first.one_pass(approved=plan_id)
        finally:
            self._second_runs = False
        view = first.wire.view
        if not view.troubled and report.held is not None and report.held.plan_id == plan_id:
            raise Violation("approved", f"a person released {plan_id}, and it is held all the same")
        if report.released:
            released = frozenset(Key(*key) for key in report.released)
            if released != self.judge.releases.sets.get(plan_id):
                raise Violation(
                    "approved", f"a person released {plan_id}, and another set was released by it"
                )
            self.judge.reached["a plan id that released"] += 1
        self.judge.imports.judge_approved(plan_id, report)
        return f"a person has released {plan_id}"

    def run_second_copy(self) -> str:
        """Makes a pass of the second copy, which has its own memory. It is not called while it
        runs."""
        if self._second_runs:
            return ""
        self._second_runs = True
        if self.telling:
            self.tale.append((self.clock.time, "a second copy begins a pass"))
        try:
            if self._second is None:
                machine = MachineClock(self.clock)
                self._second = self._process(
                    "the second copy", machine, None, self._another_pass_over, first=False
                )
            self._second.one_pass()
        finally:
            self._second_runs = False
        return "the second copy has made a pass"

    # --- How it goes on ---------------------------------------------------------------------------

    def _process(
        self,
        name: str,
        machine: MachineClock,
        troubles: Troubles | None,
        pass_over: Callable[[PassView, PassReport], None],
        *,
        first: bool,
    ) -> Process:
        limit = TimeLimit(machine)
        wire = Wire(
            self.world,
            self.judge,
            troubles,
            machine,
            limit,
            self._chance,
            name=name,
            call_seconds=self.story.installation.call_seconds,
            tell=self.happened_on_the_wire if self.telling else None,
            calls_so_far=self.digest,
        )
        return Process(
            self.story.installation,
            machine,
            limit,
            wire,
            self._chance,
            first=first,
            pass_over=pass_over,
        )

    def _run_other_half(self) -> None:
        self.run_second_copy()
        self.clock.at(self.clock.time + _OTHER_HALF, self._run_other_half)

    def happened_on_the_wire(self, what: str) -> None:
        """Adds a call to the tale."""
        self.tale.append((self.clock.time, what))

    def _happen(self, event: Event) -> None:
        what = event.happen(self)
        if what:
            self.judge.reached[type(event).__name__] += 1
        self.happened(what)

    def _another_pass_over(self, view: PassView, report: PassReport) -> None:
        # Conditions tell of any copy's plan id; what rests is the first one's, or both halves'.
        if self.story.installation.halves and view.approved is None:
            self.judge.held_by["the second copy"] = _held(report)
        self._note_report(view, report)

    def _note_report(self, view: PassView, report: PassReport) -> None:
        self.judge.imports.note_pass(view, report)
        if report.held is not None:
            self.judge.releases.sets[report.held.plan_id] = _held(report)
        if report.imports is not None and report.imports.held is not None:
            held = report.imports.held
            endpoints = frozenset(Key(*removal.key) for removal in held.removals)
            self.judge.releases.sets[held.plan_id] = endpoints

    def _pass_over(self, view: PassView, report: PassReport) -> None:
        self.passes += 1
        if view.taken or view.brought:
            self._changed = view.begun
        if self._rest.judged is None:
            self._note_status_writes(view)
        view.stopped = any(other.stops_us for other in report.other_owners)
        if view.stopped:
            self.judge.reached["a pass that another owner stopped"] += 1
        # Processes of one pass or two look at the other peers for a minute and a half of eight.
        before = self.judge.held_by.get("the program", frozenset())
        unseen = {key for key in before if self.judge.stands_in_part(key)}
        unseen = unseen if self.story.installation.mode is not Mode.DAEMON else set()
        self.judge.held_by["the program"] = _held(report) | unseen
        self._note_report(view, report)
        self.judge.pass_ended(view, report, period=PERIOD)
        code = of_report(report, fail_on_held=False, detailed=False)
        self.judge.strays.judge_pass(view, well=code is ExitCode.OK)
        self.judge.last_ones.judge_pass(view, well=code is ExitCode.OK)
        rest = self._rest
        later = _APART + (_OTHER_HALF_LATER if self.story.installation.halves else 0.0)
        stopped = view.stopped or bool(
            report.clashes
        )  # another cluster's may stand where this pass did not look
        if view.begun < self.story.ends or view.troubled or (stopped and self.judge.refused(view)):
            return
        if self.judge.imports.holds.waits(report) or self.judge.imports.data_centre.fades():
            return
        rest.first = view.begun if rest.first is None else rest.first
        if self._waits_for_a_sweep():
            rest.alike = None
        elif rest.alike is None:
            rest.alike = view.begun
        if rest.judged is not None:
            last, rest.judged = rest.judged, view.begun
            now, syncers = self.clock.time, self.judge.truth.syncers
            ends = self.judge.releases.any_ends(syncers, last, now)
            if ends or self.judge.imports.any_release_ends(last, now):
                self.judge.reached["a release that ended at rest"] += 1
                return  # a condition says so now, and the next pass is to be quiet
            if rest.changed and view.writes and all(map(_is_status_of_import, view.writes)):
                self.judge.reached["an import that tells at rest what went"] += 1
                rest.changed = False
                return  # it tells so once, and the next pass is to be quiet
            is_held = report.held is not None or (
                report.imports is not None and report.imports.held is not None
            )
            anew = [write for write in view.writes if self._begins_a_wait_anew(view, write)]
            if is_held and view.writes and anew == view.writes:
                self.judge.reached["a wait of a held removal that began anew at rest"] += 1
                self._note_status_writes(view)
                return  # only a status says since when, and the next pass is to be quiet
            if view.writes:
                raise Violation("quiet", f"a pass at rest wrote: {view.writes[0]}")
            rest.done = True
            self._machine.stopped = True
        elif view.begun >= later + min(
            rest.first + _SWEPT_AFTER, inf if rest.alike is None else rest.alike
        ):
            Rest(self.judge, view).all()
            rest.judged = view.begun
            # Eureka's list shows a change half a minute later, so a pass at rest is the first to see
            # the last one.
            rest.changed = view.begun - self._changed <= _LIST_IS_OLD

    def _begins_a_wait_anew(self, view: PassView, write: str) -> bool:
        """Whether processes of one or two passes held a removal for so long that the first sight of
        it counts no more."""
        if self.story.installation.mode is Mode.DAEMON or not write.endswith("/status"):
            return False
        return view.begun - self._status_writes.get(write, view.begun) > _SIGHT_LASTS

    def _note_status_writes(self, view: PassView) -> None:
        for write in view.writes:
            self._status_writes[write] = view.begun

    def _waits_for_a_sweep(self) -> bool:
        """Whether only one of several servers has an instance of ours. A fourth of the stories with
        several servers waits ten minutes in any case, because leases must be renewed on all."""
        if len(self.judge.known) == 1:
            return False
        first, *others = (
            {(key, status_of(state[key])) for key in self.judge.ours_of(state)}
            for state in self.judge.known
        )
        return (
            self.story.seed % 4 == 0
            or self.judge.truth.a_deletion_waits
            or any(one != first for one in others)
        )


def _is_status_of_import(write: str) -> bool:
    return "/eurekaimports/" in write and write.endswith("/status")


def _held(report: PassReport) -> frozenset[Key]:
    return frozenset(Key(*action.key) for action in (report.held.removals if report.held else ()))
