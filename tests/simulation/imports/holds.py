"""Which removals from imports have to wait, and how long: the holds of the contract.

A removal may wait for an old enough registry, for another Eureka server, for a second look, or for
a person. Each of them has to be true by the servers' own state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.troubles import Call
from tests.simulation.view import PassView, Violation, named
from tests.simulation.world import Key

from .oracle import ImportTruth, Socket

if TYPE_CHECKING:
    from eurekube_sync.controller.one_pass import PassReport
    from tests.simulation.judge import Judge

    from .promises import Before, Imports

_YOUNG = 300.0
"""Seconds for which a registry may lack instances that live."""
_OLD_LIST = 245.0
"""Seconds by which the newest renewal in a list may be old: heartbeats come each 30 s, do not renew
the cache of 180 s behind the list, and that list is 30 s old."""
_SLACK = 35.0
"""Seconds from a change to a list that shows it."""
_UNSEEN = 100.0
"""Seconds in which a server that could not be listed is asked again, by a pass each 30 s."""
_SECOND_LOOK = 19.0
"""Seconds from the first look to the second, less what whole seconds of a status may take."""
_VALID = 600.0
"""Seconds for which a first look counts, at least."""
_CONFIRMED = 26.0
"""Seconds between the begins of two passes, of which the second surely confirms the first."""
_MUCH, _MUCH_PERCENT = 10, 30
_EMPTIED_PERCENT = 5
_NEEDED = frozenset({Call.IMPORTS, Call.SERVICES, Call.SLICES})
_DOUBTS = frozenset({"RegistryYoung", "ServerUnseen"})
"""Holds that say that an instance may live. A pass with one of them has not seen it gone."""


class _Look(NamedTuple):
    """A pass that looked."""

    begun: float
    doubted: frozenset[Key]
    """The endpoints that it has not seen gone, although the list lacks their instances."""


class Holds:
    """Remembers what every pass has taken, and when a trouble may have kept it from a look."""

    def __init__(self, judge: Judge, imports: Imports) -> None:
        self._judge = judge
        self._imports = imports
        self._trouble = 0.0
        """When a pass last met a trouble."""
        self._warm = 0.0
        """When each server that started again gives its list again."""
        self._good: list[_Look] = []
        """The good passes since then. A pass without a list that its imports need is none, and ends
        none."""
        self._process: object = None
        """The process that made the last pass."""
        self._remembering: list[object] = []
        """The processes that have looked, and remember it by a clock that is never wrong."""

    def note(self, view: PassView, report: PassReport) -> None:
        """Notes the end of a pass of the program."""
        same_process = view.process is self._process
        self._process = view.process
        if view.troubled or view.older or report.imports is None:
            self._trouble = self._judge.world.clock.time
            if not (same_process and self._lacks_lists_alone(view, report)):
                self._good.clear()
            return
        if report.imports.registry is not None:  # it could not look, so a wait begins anew
            self._good.clear()
            return
        held = report.imports.held
        doubted: set[Key] = set()
        for hold in held.holds if held is not None else ():
            if str(hold.reason) in _DOUBTS:
                doubted.update(Key(*removal.key) for removal in hold.removals)
        self._good.append(_Look(view.begun, frozenset(doubted)))

    def _lacks_lists_alone(self, view: PassView, report: PassReport) -> bool:
        """Whether the pass read Eureka, and failed to list something of the whole cluster that all
        imports need: it judged none of them."""
        done = report.imports
        misled = view.older or view.strayed or view.found_elsewhere or view.last_elsewhere
        if misled or done is None or done.registry is not None or done.doubt is not None:
            return False
        failed = view.failed - {Call.SYNCERS}
        if not failed or not failed <= _NEEDED - view.lists.keys():
            return False
        if self._judge.story.installation.scoped:
            return False
        if self._good:
            self._judge.reached["a pass that ended no wait, because a list failed"] += 1
        return True

    def eureka_warms_up(self, until: float) -> None:
        """Notes that a server refuses its list until then."""
        self._warm = max(self._warm, until)

    def note_looked(self, view: PassView, report: PassReport) -> None:
        """Notes that a pass of any copy has looked."""
        if report.imports is not None and not self._remembers(view):
            self._remembering.append(view.process)

    def _remembers(self, view: PassView) -> bool:
        """Whether an earlier pass of the process looked. Else the times in the statuses count."""
        return any(process is view.process for process in self._remembering)

    def waits(self, report: PassReport) -> bool:
        """Whether a hold is reported that ends by itself. That of a Eureka that stays empty does
        not: it is as young as after a start."""
        held = report.imports.held if report.imports is not None else None
        reasons = {str(hold.reason) for hold in held.holds} if held is not None else set()
        reasons.discard("TooManyRemovals")
        if reasons == {"RegistryYoung"} and self._stays_empty():
            self._judge.reached["a hold at rest of a Eureka that stays empty"] += 1
            return False
        return bool(reasons)

    def _stays_empty(self) -> bool:
        """Whether Eureka lists nothing, and neither a client nor the program is to register."""
        registers = self._imports.data_centre.clients or self._judge.truth.up
        return not registers and not any(self._judge.known)

    # --- What leaves ------------------------------------------------------------------------------

    def judge_lost(
        self,
        view: PassView,
        import_: ImportTruth,
        there: frozenset[Socket],
        lost: frozenset[Socket],
        was: Before,
    ) -> None:
        """Judges that endpoints left an import."""
        now, uid = self._judge.world.clock.time, import_.uid
        if not view.endpoints:
            view.endpoints.update(self._imports.oracle.endpoints)
        if uid not in view.losing:
            view.endpoints[uid] = there
        view.losing.add(uid)
        if view.approved is not None or self._imports.releases.may_free(view, import_, now):  # type: ignore[arg-type]
            view.losing.discard(uid)
            return
        self._judge_number(view, import_)
        if not self._imports.oracle.endpoints.get(uid):
            self._judge_last(view, import_, lost, was)

    def _judge_number(self, view: PassView, import_: ImportTruth) -> None:
        before, now = view.endpoints, self._imports.oracle.endpoints
        had = len(before[import_.uid])
        lost = had - len(now[import_.uid])
        if lost > _MUCH and lost > had * _MUCH_PERCENT / 100:
            raise Violation(
                "many", f"import {named(import_.ref)} lost {lost} of {had} endpoints at once"
            )
        emptied = [uid for uid in view.losing if not now.get(uid)]
        served = [uid for uid, sockets in before.items() if sockets]
        if len(emptied) > max(1, len(served) * _EMPTIED_PERCENT / 100):
            raise Violation("many", f"{len(emptied)} of {len(served)} imports were emptied at once")

    def _judge_last(
        self, view: PassView, import_: ImportTruth, lost: frozenset[Socket], was: Before
    ) -> None:
        """The last endpoint has been unwanted for the time of a second look. A process that has not
        looked yet takes the first look's time from the status: where another machine's clock is
        wrong, nothing tells it."""
        now = self._judge.world.clock.time
        self._judge.reached["an import that lost its last endpoint"] += 1
        if not self._judge.clock_right and not self._remembers(view):
            self._judge.reached["a last endpoint that left by a wrong clock's time"] += 1
            return
        for socket in lost:
            unwanted = was.unwanted.get((import_.uid, socket))
            if unwanted is not None and now - unwanted < _SECOND_LOOK:
                raise Violation(
                    "twice",
                    f"import {named(import_.ref)} lost its last endpoint {now - unwanted:.1f} s "
                    "after its instance was gone",
                )

    # --- What stays -------------------------------------------------------------------------------

    def against(
        self, import_: ImportTruth, socket: Socket, since: float, report: PassReport
    ) -> str:
        """What speaks against an endpoint that stays; empty if a hold of this pass says why, and is
        true."""
        assert report.imports is not None
        held = report.imports.held
        key = Key("/".join(import_.ref), f"{socket[0]}:{socket[1]}")
        for hold in held.holds if held is not None else ():
            if any(tuple(removal.key) == key for removal in hold.removals):
                reason = str(hold.reason)
                self._judge.reached[f"an endpoint that stays: {reason}"] += 1
                number = len(held.removals) if held else 0
                true = self._is_true(reason, import_, key, since, number)
                return "" if true else f"{reason} is over ({hold.text})"
        return "nothing holds it"

    def _is_true(
        self, reason: str, import_: ImportTruth, key: Key, since: float, held: int
    ) -> bool:
        now = self._judge.world.clock.time
        match reason:
            case "RegistryYoung":
                return any(age <= _YOUNG + _OLD_LIST for age in self._ages())
            case "ServerUnseen":
                return now - max(self._trouble, self._warm) <= _UNSEEN
            case "AwaitingConfirmation":
                changed = self._imports.oracle.changed_at[import_.uid]
                looks = []
                begin = max(changed, since) + _SLACK
                for look in self._good:
                    is_valid = now - look.begun < _VALID
                    if look.begun > begin and is_valid and key not in look.doubted:
                        looks.append(look.begun)
                twice = bool(looks) and looks[-1] - looks[0] > _CONFIRMED
                return not twice or not self._judge.clock_right
            case "TooManyRemovals":
                return held > 1
        return False

    def _ages(self) -> list[float]:
        """The age of the registry of each server: that of its oldest registration."""
        now = self._judge.world.clock.now()
        ages = []
        for state in self._judge.known:
            times = [listed[1].registered for listed in state.values()]
            ages.append(now - min(times) / 1000 if times else 0.0)
        return ages
