"""The promises about imports, held against the true state of the servers.

At every write of the program:

living      an endpoint whose instance lives, and that its import names, leaves no import, whatever
            a list, a Eureka server or a write does
twice       the last endpoint of an import leaves only after a second look, 20 s later by the clock
            of a process that made both, or by those of two machines
many        a pass neither empties several imports nor takes more than 10 endpoints and 30 % of one,
            unless a person released that
foreign     no Service and no slice is changed that is not an import's, and no Service is deleted
network     no address outside of the networks is written
invented    an endpoint is written only where an instance was UP that the import names
unknown     nothing is written while Eureka cannot be read, and nothing of a suspended import
kept        what an import has goes with it only if a person deleted it, or let it go
echo        no syncer registers what is imported, and no import leads to what a syncer registered

At the end of every good pass:

gone        an endpoint whose instance has gone has left, unless a hold says why it stays
callable    every instance that is UP on all servers is an endpoint, its Service is there unless it
            went after the pass had listed Services, and where both cannot be, a condition says so

*churn* and *quiet* judge that a steady pass writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from eurekube_sync.embedded.http import Request
from eurekube_sync.model.imports import ImportRef
from tests.embedded.instances import Listed
from tests.simulation.releases import Releases
from tests.simulation.troubles import Call
from tests.simulation.view import PassView, Violation, named
from tests.simulation.world import Key

from .data_centre import NETWORK, DataCentre
from .holds import Holds
from .oracle import (
    FINALIZER,
    LIST_IS_OLD,
    ImportTruth,
    Object,
    Oracle,
    Place,
    Ref,
    Socket,
    controller_of,
    is_of_an_import,
    within,
)

if TYPE_CHECKING:
    from eurekube_sync.controller.one_pass import PassReport
    from tests.simulation.judge import Judge


class Before(NamedTuple):
    """What was true right before a call."""

    wanted: Mapping[Place, float]
    unwanted: Mapping[Place, float]
    suspended: Mapping[str, float]


class Imports:
    """Sees every write of the program that is about imports."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._is_on = bool(judge.story.installation.networks)
        self.data_centre = DataCentre(judge.world)
        self.oracle = Oracle(judge)
        self.releases = Releases()
        self.holds = Holds(judge, self)
        self._judged: PassView | None = None

    def look(self, now: float) -> None:
        """Notes what is true now."""
        if self._is_on:
            self.oracle.look(now)
            self.releases.look(self._by_ref(), now)  # type: ignore[arg-type]

    def any_release_ends(self, since: float, until: float) -> bool:
        """Whether an annotation of an import ends between these moments."""
        return self.releases.any_ends(self._by_ref(), since, until)  # type: ignore[arg-type]

    def _by_ref(self) -> dict[Ref, ImportTruth]:
        return {import_.ref: import_ for import_ in self.oracle.imports.values()}

    # --- Writes -----------------------------------------------------------------------------------

    def judge_write(self, view: PassView, request: Request) -> None:
        """Judges a call to Kubernetes that was made: what was known is the state before."""
        if not self._is_on:
            return
        oracle, now = self.oracle, self._judge.world.clock.time
        before = oracle.imports, oracle.slices, oracle.services, oracle.endpoints
        was = Before(oracle.wanted_since, oracle.unwanted_since, oracle.suspended_since)
        oracle.look(now)
        imports, slices, services, endpoints = before
        if not _is_about_imports(request):
            return
        ended = imports.keys() - oracle.imports.keys()
        for uid in ended:
            self._judge_end(imports[uid])
        self._judge_foreign(request, slices, services, ended)
        for uid, there in endpoints.items():
            if uid in ended:
                continue
            lost = there - oracle.endpoints.get(uid, frozenset())
            if lost and uid in imports:
                self._judge_lost(view, imports[uid], there, lost, was)
        for uid, there in oracle.endpoints.items():
            for socket in sorted(there - endpoints.get(uid, frozenset())):
                self._judge_added(view, uid, socket, was)
        if endpoints != oracle.endpoints:
            self._judge.steady.changed(now)
        written = slices != oracle.slices or services != oracle.services
        if written and view.eureka is None and not ended:
            raise Violation("unknown", f"{request.path} was written without a list of Eureka")

    def moment(self, view: PassView) -> float:
        """The pass must have seen what was true at this moment and stayed so."""
        lists = [view.lists[call] for call in _READ if call in view.lists]
        eureka = view.eureka if view.eureka is not None else view.begun
        return min([eureka - LIST_IS_OLD, *lists])

    def _judge_lost(
        self,
        view: PassView,
        import_: ImportTruth,
        there: frozenset[Socket],
        lost: frozenset[Socket],
        was: Before,
    ) -> None:
        uid, moment = import_.uid, self.moment(view)
        named_by_plan = self._judge.releases.approved(view)
        for socket in sorted(lost):
            if Key("/".join(import_.ref), _where(socket)) in named_by_plan:
                continue  # a person asked for just this
            since = was.wanted.get((uid, socket))
            if since is not None and since <= moment:
                raise Violation(
                    "living",
                    f"{_where(socket)} left import {named(import_.ref)}, and its instance lives "
                    f"since {since:.1f} s",
                )
        if was.suspended.get(uid, inf) <= moment:
            raise Violation("unknown", f"import {named(import_.ref)} is suspended, and was written")
        self._judge.reached["endpoints that left an import"] += len(lost)
        self.holds.judge_lost(view, import_, there, lost, was)

    def _judge_added(self, view: PassView, uid: str, socket: Socket, was: Before) -> None:
        address, _ = socket
        import_ = self.oracle.imports.get(uid)
        self._judge.reached["an endpoint of an import"] += 1
        if not self.oracle.in_networks(address):
            raise Violation(
                "network", f"{_where(socket)} was written, and is in no network of ours"
            )
        if import_ is None or not self.oracle.was_possible(import_, socket, self.moment(view)):
            ours = self.oracle.ours.get(address, -1.0) >= self.moment(view)
            raise Violation(
                "echo" if ours else "invented",
                f"{_where(socket)} was written, and no instance there is UP",
            )
        if was.suspended.get(uid, inf) <= self.moment(view):
            raise Violation("unknown", f"import {named(import_.ref)} is suspended, and was written")

    def _judge_end(self, import_: ImportTruth) -> None:
        self._judge.reached["an import that ended"] += 1
        if FINALIZER in import_.finalizers and not import_.deleting and not import_.abandoned:
            raise Violation(
                "kept", f"import {named(import_.ref)} was let go, and nobody has deleted it"
            )

    def _judge_foreign(
        self,
        request: Request,
        slices: Mapping[Ref, Object],
        services: Mapping[Ref, Object],
        ended: set[str],
    ) -> None:
        if request.method == "DELETE" and "/services/" in request.path:
            raise Violation("foreign", f"{request.path} was deleted")
        for before, after, what in (
            (slices, self.oracle.slices, "slice"),
            (services, self.oracle.services, "Service"),
        ):
            for ref, thing in before.items():
                if what == "slice" and is_of_an_import(thing):
                    continue
                kind, uid = controller_of(thing)
                if (what == "Service" and kind == "EurekaImport") or uid in ended:
                    continue
                if after.get(ref) != thing:
                    raise Violation("foreign", f"{what} {named(ref)} is no import's, and changed")
        for ref, thing in self.oracle.slices.items():
            was = slices.get(ref)
            if was is not None and controller_of(was) != controller_of(thing):
                raise Violation("foreign", f"slice {named(ref)} was taken over")

    def judge_registered(self, key: Key, stands: Listed) -> None:
        """Judges that the program registered an instance."""
        if self._is_on and within(stands[0].ip_addr or "0.0.0.0", (NETWORK,)):
            raise Violation("echo", f"{key} was registered, and it is an app of the data centre")

    # --- The end of a pass ------------------------------------------------------------------------

    def note_pass(self, view: PassView, report: PassReport) -> None:
        """Notes a pass of any copy of the program."""
        if not self._is_on:
            return
        self._judge.reached["a pass with imports"] += 1
        self.holds.note_looked(view, report)
        # Time alone ends the hold, whichever half of the installation has the import.
        if self.holds.waits(report):
            self._judge.steady.changed(self._judge.world.clock.time)

    def judge_pass(self, view: PassView, report: PassReport) -> None:
        """Judges the end of a pass of the first copy."""
        if not self._is_on:
            return
        if report.bug is not None:
            raise Violation("crash", f"the step of imports ended with {report.bug!r}")
        self.holds.note(view, report)
        if view.troubled or view.older or view.stopped or report.clashes or report.cut_short:
            return
        done = report.imports
        if done is None:
            raise Violation("callable", "a good pass did nothing for imports")
        if done.registry is not None or done.doubt is not None:
            return  # a read showed that the list was old
        self._judge.reached["a good pass with imports"] += 1
        moment = self.moment(view)
        for import_ in sorted(self.oracle.imports.values(), key=lambda import_: import_.uid):
            outcome = done.outcomes.get(ImportRef(*import_.ref))
            if outcome is not None and outcome.failed:
                continue  # what a person wrote meanwhile was in its way
            if self._is_ours(import_):
                self._judge_gone(import_, moment, report)
                self._judge_callable(view, import_, moment)
        self._judged = view

    def judge_rest(self, view: PassView) -> None:
        """Judges the end of a story: its last pass was good, and judged."""
        if self._is_on and self._judged is not view:
            raise Violation("callable", "a pass at rest did nothing for imports")
        for import_ in self.oracle.imports.values() if self._is_on else ():
            held = import_.conditions.get("RemovalHeld", ("", ""))[1]
            if import_.deleting and self._is_ours(import_) and held != "TooManyRemovals":
                raise Violation("kept", f"import {named(import_.ref)} is deleted, and still there")

    def judge_approved(self, plan_id: str, report: PassReport) -> None:
        """Judges a person's pass that should release a plan id: the whole set, or nothing."""
        if report.imports is None or not report.imports.approved:
            return
        self._judge.reached["a plan id of imports that released"] += 1
        released = frozenset(Key(*key) for key in report.imports.approved)
        if released != self._judge.releases.sets.get(plan_id):
            raise Violation("approved", f"{plan_id} released other endpoints than it names")

    def _is_ours(self, import_: ImportTruth) -> bool:
        """Whether this program serves it, and not the other half."""
        return not self._judge.story.installation.halves or import_.team == "one"

    def _judge_gone(self, import_: ImportTruth, moment: float, report: PassReport) -> None:
        if import_.going or import_.suspended:
            return
        resumed = self._judge.story.installation.upsert_only
        for socket in sorted(self.oracle.endpoints.get(import_.uid, ())):
            since = self.oracle.gone_since.get((import_.uid, socket))
            if since is None or since > moment or resumed:
                continue
            against = self.holds.against(import_, socket, since, report)
            if against:
                raise Violation(
                    "gone",
                    f"{_where(socket)} is in import {named(import_.ref)}, its instance has gone "
                    f"at {since:.1f} s, and {against}",
                )

    def _judge_callable(self, view: PassView, import_: ImportTruth, moment: float) -> None:
        uid, oracle = import_.uid, self.oracle
        if import_.going or import_.suspended or oracle.first_seen[uid] > moment:
            return
        free = oracle.free_since.get(uid)
        service = oracle.services.get(import_.service)
        if free is None:
            self._judge_conflict(import_, service, moment)
            return
        if free > moment or oracle.changed_at[uid] > moment:
            return
        # A list of Services is never old. What a person deletes after it is for the next pass.
        without = oracle.without_service_since.get(uid, inf)
        if service is None and without <= view.lists.get(Call.SERVICES, moment):
            raise Violation("callable", f"import {named(import_.ref)} has no Service")
        there = oracle.endpoints.get(uid, frozenset())
        for (whose, socket), since in sorted(oracle.shown_since.items()):
            if whose == uid and since <= moment and socket not in there:
                raise Violation(
                    "callable",
                    f"{_where(socket)} is UP since {since:.1f} s, and not in import "
                    f"{named(import_.ref)}",
                )

    def _judge_conflict(self, import_: ImportTruth, service: Object | None, moment: float) -> None:
        """A Service of somebody else keeps an import from having one, and a condition says so."""
        if import_.adopts or service is None or oracle_changed(self.oracle, import_, moment):
            return
        if controller_of(service) == ("EurekaImport", import_.uid):
            return  # something else forbids it
        self._judge.reached["an import whose Service is somebody else's"] += 1
        if import_.conditions.get("Conflict", ("",))[0] != "True":
            raise Violation(
                "callable",
                f"Service {named(import_.service)} is not of import {named(import_.ref)}, and no "
                "condition says so",
            )


_READ = (Call.IMPORTS, Call.SLICES, Call.SERVICES)
"""The lists that decide about imports."""


def oracle_changed(oracle: Oracle, import_: ImportTruth, moment: float) -> bool:
    """Whether an import changed after that moment."""
    return oracle.changed_at.get(import_.uid, moment + 1) > moment


def _is_about_imports(request: Request) -> bool:
    kinds = ("/services", "/endpointslices", "/eurekaimports")
    return any(kind in request.path for kind in kinds)


def _where(socket: Socket) -> str:
    return f"{socket[0]}:{socket[1]}"
