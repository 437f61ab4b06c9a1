"""The status page: what the last pass said, and a page with the links of `explain` for each syncer
and import.

It is a view of the report that the process has. It calls no server and needs no script. Its size is
bounded: what is not shown is counted, and a filter finds it. Only this file imports jinja2."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlencode
from weakref import WeakKeyDictionary

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from eurekube_sync import __version__
from eurekube_sync.adapters.tries import NO_ANSWER
from eurekube_sync.brake.approval import approve_command
from eurekube_sync.brake.holds import Held
from eurekube_sync.cli.monitoring.metrics import AT_RISK, GOOD, INSTANCES, LOST, Monitor, Seen
from eurekube_sync.cli.monitoring.rows import Kind, Row, State, link_of, rows_of
from eurekube_sync.controller.diagnosis import held_since, holding, problems_of_the_pass
from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.explain.after_pass import explain_after, explain_import_after, look_after
from eurekube_sync.explain.links import Explanation
from eurekube_sync.explain.overview import parse_condition
from eurekube_sync.model.docs import help_on, page
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.kubernetes import Condition, GoodPass, LockRecord, SyncerRef
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, cut, one_or_more, rfc_3339, span

MOST_ROWS = 200  # of the rows that need somebody, and again of the others, for each kind
MOST_CHARACTERS = 240  # of a message; the page of its syncer has all
_MOST_PROBLEMS = 20
_MOST_LOOKED_AT = 8  # syncers of what is held
_MOST_OPENED = 20  # rows of a filter that are shown although they are in order
_MOST_GIVEN = 253  # characters of a value in a query: no name of Kubernetes is longer
_MOST_FIELDS = 10  # of a query
RELOAD_SECONDS = 30
_REFUSALS = frozenset({"401", "403", "407", "429"})  # HTTP statuses that are of no single instance


class Answer(NamedTuple):
    status: int  # of HTTP
    body: bytes


class Query(Struct, frozen=True, kw_only=True):
    """What a visitor wants to see: the fields of the form."""

    ns: str = ""
    q: str = ""
    state: str = ""
    reload: bool = False  # whether the browser loads the page again by itself

    def takes(self, row: Row) -> bool:
        if self.ns and row.namespace != self.ns:
            return False
        if self.q and not row.has(self.q):
            return False
        if self.state == NEEDING:
            return not row.is_quiet
        return not self.state or row.is_in(self.state)

    @property
    def filters(self) -> bool:
        return bool(self.ns or self.q or self.state)

    def link(self, **changes: Any) -> str:
        """Return this query with changes, as the address of the first page."""
        changed = replace(self, **changes)
        fields = {"ns": changed.ns, "q": changed.q, "state": changed.state, "reload": ""}
        if changed.reload:
            fields["reload"] = "on"
        given = {name: value for name, value in fields.items() if value}
        if not given:
            return "."
        return f"?{urlencode(given)}"


NEEDING = "needing"  # a value of `?state=`: all rows that need somebody


def parse_query(text: str) -> Query:
    """Read the query of an address. Unknown fields are ignored, as those of a probe. Raises
    ValueError with a message for the visitor: a typo would show nothing, and look like a cluster
    without syncers."""
    fields = parse_qs(text, max_num_fields=_MOST_FIELDS)
    given = {"ns": "", "q": "", "state": ""}
    for name in given:
        if name in fields:
            last = fields[name][-1]
            given[name] = last.strip()
        if len(given[name]) > _MOST_GIVEN:
            raise ValueError(f"{name} has at most {_MOST_GIVEN} characters")
    state = given["state"]
    if state and state not in (NEEDING, *State):
        state = parse_condition(state)
    return Query(ns=given["ns"], q=given["q"], state=state, reload="reload" in fields)


class Listed(Struct, frozen=True, kw_only=True):
    """The rows of one kind that a query takes, as far as the page shows them."""

    needing: Sequence[Row]  # those that need somebody, the worst first
    quiet: Sequence[Row]  # the others, which are folded
    more_needing: int  # how many are not shown
    more_quiet: int
    taken: int  # by the query
    total: int
    counts: Mapping[State, int]  # of all rows

    @property
    def is_open(self) -> bool:
        """Whether the others are shown at once: they are few, and somebody asked for them."""
        return self.taken < self.total and len(self.quiet) <= _MOST_OPENED

    @property
    def ours(self) -> int:
        """The number of all rows that this installation serves."""
        return self.total - self.counts[State.OTHER_CLASS]


class Hold(Struct, frozen=True, kw_only=True):
    """What is held, with what a person needs to decide."""

    what: str  # such as `8 removals wait`
    plan_id: str
    why: str
    approve: str  # the command
    since: float | None = None  # Unix seconds; None: since this pass
    evidence: str = ""  # a sentence without its end; empty for none
    warns: bool = False  # whether the pods say that an approval is wrong
    look_at: Sequence[SyncerRef] = ()  # the syncers of what is held
    more: int = 0  # syncers that are not shown


class Page:
    """Answers with pages, from what the monitor has."""

    def __init__(self, monitor: Monitor, *, interval: float | None = None) -> None:
        """`interval`: seconds from the start of a pass to the start of the next; None if there is
        no next."""
        self._monitor = monitor
        self._interval = interval
        # One visitor at a time: the passes of this process need the processor, too.
        self._guard = threading.Lock()
        # What is made once for a pass, and goes with it
        self._rows: WeakKeyDictionary[Seen, list[Row]] = WeakKeyDictionary()
        self._looks: WeakKeyDictionary[Seen, Look] = WeakKeyDictionary()

    def first(self, query: str) -> Answer:
        """Answer with the page of all."""
        status = 200
        wrong = ""
        asked = Query()
        try:
            asked = parse_query(query)
        except ValueError as error:
            status = 400
            wrong = str(error)
        with self._guard:
            values = self._of_all(asked, self._monitor.known)
            values["wrong"] = wrong
            return _answer(status, "first.html", values)

    def single(self, path: str) -> Answer:
        """Answer with the page of a syncer or an import, such as `syncer/shop/cart`, and with 404
        if there is none."""
        asked = [unquote(part) for part in path.split("/")]
        depth = min(path.count("/"), _MOST_FIELDS)
        root = "../" * depth
        with self._guard:
            known = self._monitor.known
            if known is not None:
                for row in self._rows_of(known):
                    if [row.kind, row.namespace, row.name] == asked:
                        values = self._of_row(row, known)
                        values["root"] = root
                        return _answer(200, "single.html", values)
            values = self._head(known)
            values["asked"] = cut(path, MOST_CHARACTERS)
            values["root"] = root
            return _answer(404, "missing.html", values)

    def _rows_of(self, known: Seen) -> list[Row]:
        """Return the rows of the last pass that knew the syncers."""
        if known not in self._rows:
            self._rows[known] = rows_of(known.report)
        return self._rows[known]

    def _head(self, known: Seen | None) -> dict[str, Any]:
        """Return what each page says of the process."""
        monitor = self._monitor
        values: dict[str, Any] = {
            "owner": monitor.owner,
            "now": monitor.clock.now(),
            "known": None,
            "is_old": False,
        }
        if known is not None:
            values["known"] = known.passed
            values["is_old"] = known is not monitor.latest
        return values

    def _of_all(self, query: Query, known: Seen | None) -> dict[str, Any]:
        """Return what the page of all shows."""
        monitor = self._monitor
        rows: list[Row] = []
        cluster = None
        if known is not None:
            rows = self._rows_of(known)
            cluster = known.report.cluster
        latest = monitor.latest
        problems: list[Problem] = []
        holds: list[Hold] = []
        if latest is not None:
            problems = _problems(latest.report)
            holds = list(_holds(latest.report))
        return {
            **self._head(known),
            "query": query,
            "reload": query.reload,
            "reload_seconds": RELOAD_SECONDS,
            "waits": monitor.ready and latest is None,
            "live": monitor.live,
            "syncers": _listed(rows, Kind.SYNCER, query),
            "imports": _listed(rows, Kind.IMPORT, query),
            "states": list(State),
            "reasons": _reasons_in(rows),
            "numbers": list(_numbers(monitor)),
            "holds": holds,
            "problems": problems[:_MOST_PROBLEMS],
            "more_problems": max(0, len(problems) - _MOST_PROBLEMS),
            "passes": monitor.passes,
            "good": GOOD,
            "next_pass": self._next(latest),
            "servers": list(_servers(monitor)),
            "cluster": cluster,
            "scope": monitor.scope,
            "lock": monitor.lock,
            "version": __version__,
        }

    def _next(self, latest: Seen | None) -> float | None:
        """Return when the next pass begins, in Unix seconds; None if nobody knows."""
        if latest is None or self._interval is None:
            return None
        # A pass that took longer than the interval is followed by the next at once.
        due = latest.report.at + self._interval
        return max(due, latest.passed.at)

    def _of_row(self, row: Row, known: Seen) -> dict[str, Any]:
        """Return what the page of a syncer or an import shows."""
        conditions: Sequence[Condition] = ()
        if row.status is not None:
            conditions = row.status.conditions
        return {
            **self._head(known),
            "row": row,
            "found": self._explained(row, known),
            "conditions": conditions,
            "what": _what(row),
        }

    def _explained(self, row: Row, known: Seen) -> Explanation | None:
        if known not in self._looks:
            lock = LockRecord(holder="", good=self._last_good(known))
            self._looks[known] = look_after(known.report, at=known.passed.at, lock=lock)
        look = self._looks[known]
        if row.kind is Kind.IMPORT:
            return explain_import_after(look, ImportRef(row.namespace, row.name))
        return explain_after(look, SyncerRef(row.namespace, row.name))

    def _last_good(self, known: Seen) -> GoodPass | None:
        """Return the last good pass of this process, up to the one that is shown."""
        monitor = self._monitor
        for passed in monitor.passes:
            if passed.code in GOOD and passed.at <= known.passed.at:
                return GoodPass(
                    at=passed.at,
                    holder="this process",
                    owner=monitor.owner,
                    scope=monitor.scope,
                    result=passed.summary,
                )
        return None


def _listed(rows: Sequence[Row], kind: Kind, query: Query) -> Listed:
    """Return what the page shows of the rows of a kind."""
    of_kind = [row for row in rows if row.kind is kind]
    needing: list[Row] = []
    quiet: list[Row] = []
    for row in of_kind:
        if not query.takes(row):
            continue
        if row.is_quiet:
            quiet.append(row)
        else:
            needing.append(row)
    return Listed(
        needing=_shown(needing),
        quiet=_shown(quiet),
        more_needing=max(0, len(needing) - MOST_ROWS),
        more_quiet=max(0, len(quiet) - MOST_ROWS),
        taken=len(needing) + len(quiet),
        total=len(of_kind),
        counts=Counter(row.state for row in of_kind),
    )


def _shown(rows: Sequence[Row]) -> list[Row]:
    shown = []
    for row in rows[:MOST_ROWS]:
        shown.append(replace(row, why=cut(row.why, MOST_CHARACTERS)))
    return shown


def _what(row: Row) -> str:
    """Return the row's object as `explain` takes it."""
    name = f"{row.namespace}/{row.name}"
    if row.kind is Kind.IMPORT:
        return f"eimp/{name}"
    return name


def _reasons_in(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Return the reasons of the rows that need somebody, the most frequent first."""
    known = frozenset(Reason)
    counts: Counter[str] = Counter()
    for row in rows:
        if not row.is_quiet and row.reason in known:
            counts[row.reason] += 1
    by_name = sorted(counts.items())
    return sorted(by_name, key=lambda pair: pair[1], reverse=True)


def _numbers(monitor: Monitor) -> Iterator[tuple[str, int, bool]]:
    """Yield what is counted beside the rows: its name, the number, and whether that is bad."""
    values = monitor.values()
    statuses: Counter[str] = Counter()
    for (_, status), number in values.get(INSTANCES, {}).items():
        statuses[status] += int(number)
    for status, total in sorted(statuses.items(), reverse=True):
        yield f"instances {status}", total, status != "UP"
    for metric, name in _TROUBLES.items():
        for number in values.get(metric, {}).values():
            if number:
                yield name, int(number), True


_TROUBLES = {LOST: "apps without an UP instance", AT_RISK: "leases at risk"}
"""Metrics that are bad unless they are 0."""


def _holds(report: PassReport) -> Iterator[Hold]:
    """Yield what is held of instances, then what is held of the endpoints of imports."""
    if report.held is not None:
        syncers = holding(report, report.held)
        hold = replace(
            _hold(report, report.held, "removal", "removals"),
            since=held_since(report.all_statuses),
            look_at=syncers[:_MOST_LOOKED_AT],
            more=max(0, len(syncers) - _MOST_LOOKED_AT),
        )
        evidence = report.held.evidence()
        if evidence is not None:
            hold = replace(hold, evidence=evidence.sentence, warns=evidence.advice.warns)
        yield hold
    imports = report.imports
    if imports is not None and imports.held is not None:
        hold = _hold(report, imports.held, "removal of an endpoint", "removals of endpoints")
        yield replace(hold, since=held_since(imports.all_statuses))


def _hold(report: PassReport, held: Held, removal: str, removals: str) -> Hold:
    number = len(held.removals)
    what = counted(number, removal, removals)
    verb = one_or_more(number, "waits", "wait")
    return Hold(
        what=f"{what} {verb}",
        plan_id=held.plan_id,
        why=held.reason,
        approve=approve_command(held.plan_id, report.settings.options),
    )


def _problems(report: PassReport) -> list[Problem]:
    """Return the problems of the whole pass, without what has a place of its own on the page."""
    problems = []
    for problem in problems_of_the_pass(report):
        if problem.reason is not Reason.REMOVAL_HELD:
            problems.append(problem)
    return problems


def _servers(monitor: Monitor) -> Iterator[tuple[str, str, float | None, bool]]:
    """Yield each Eureka server: its address, its last answer, when that came, in Unix seconds, and
    whether it is bad. That an instance is not there, or is another owner's, says nothing of the
    server."""
    for address, last in list(monitor.servers.items()):
        if last is None:
            yield address, "was not asked yet", None, False
        elif last.code == NO_ANSWER:
            yield address, "gave no answer", last.at, True
        else:
            refused = last.code in _REFUSALS or last.code.startswith("5")
            yield address, f"answered {last.code}", last.at, refused


def _answer(status: int, template: str, values: Mapping[str, Any]) -> Answer:
    page = _TEMPLATES.get_template(template).render(values)
    return Answer(status, page.encode())


def _shown_text(value: Any) -> Any:
    """Write out invisible characters of others, in every text that a template shows."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("eurekube_sync.cli.monitoring"),
        autoescape=True,
        auto_reload=False,
        finalize=_shown_text,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals.update(
        counted=counted,
        docs=page,
        help_on=help_on,
        link_of=link_of,
        one_or_more=one_or_more,
        NEEDING=NEEDING,
    )
    environment.filters.update(time=rfc_3339, span=span)
    return environment


_TEMPLATES = _environment()
_STYLE = _TEMPLATES.get_template("style.css").render()
_TEMPLATES.globals["style"] = Markup(_STYLE)  # our own file
_DIGEST = hashlib.sha256(_STYLE.encode()).digest()
_HASH = base64.b64encode(_DIGEST).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""The Content-Security-Policy of all answers: our style, our form, and nothing else."""
