"""The rows of the status page: one for each syncer and import of a pass, the worst first. A row shows
what the conditions and the report say, and decides nothing itself."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import quote

from msgspec import Struct

from eurekube_sync.cli.output.report import account
from eurekube_sync.controller.diagnosis import of_other_classes
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting
from eurekube_sync.desired.imports import Ending, ImportClaim, Importing, NotImported
from eurekube_sync.explain.overview import has_condition
from eurekube_sync.explain.subject import claims_in
from eurekube_sync.model.docs import help_on
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, CustomStatus
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace


class State(StrEnum):
    """What the conditions of a syncer or an import say, the worst first, and its words."""

    words: str

    def __new__(cls, value: str, words: str) -> State:
        state = str.__new__(cls, value)
        state._value_ = value
        state.words = words
        return state

    NOT_READY = ("notReady", "not ready")
    UNKNOWN = ("unknown", "unknown")
    PROBLEM = ("problem", "ready, with a problem")
    READY = ("ready", "ready")
    OTHER_CLASS = ("otherClass", "of another class")


class Kind(StrEnum):
    """Of what a row is, as in the address of its page."""

    SYNCER = "syncer"
    IMPORT = "import"


class Row(Struct, frozen=True, kw_only=True):
    kind: Kind
    namespace: str
    name: str
    state: State
    reason: str
    why: str
    apps: tuple[str, ...] = ()
    ready: str = ""  # `UP/desired`, or of an import `written/wanted`
    serves: bool = False  # whether Eureka holds an UP instance of the syncer
    since: float | None = None  # Unix seconds; None if it is unknown
    status: CustomStatus | None = None
    claim: Claim | ImportClaim | None = None  # None: this installation does not serve it

    @property
    def link(self) -> str:
        """The address of its page, relative to the first page."""
        return link_of(self.kind, (self.namespace, self.name))

    @property
    def help(self) -> str:
        """The address of the help for its reason; empty for a reason of another version."""
        if self.reason not in list(Reason):
            return ""
        return help_on(self.reason)

    @property
    def is_quiet(self) -> bool:
        """Whether nobody has to see to it."""
        return self.state in (State.READY, State.OTHER_CLASS)

    def has(self, text: str) -> bool:
        """Whether its name, an app or the reason contains this text, in upper or lower case."""
        wanted = text.lower()
        names = (f"{self.namespace}/{self.name}", self.reason, *self.apps)
        return any(wanted in name.lower() for name in names)

    def is_in(self, state: str) -> bool:
        """Whether it has this state, reason or condition."""
        if state in (self.state.value, self.reason):
            return True
        return has_condition(self.status, state)


def link_of(kind: str, ref: tuple[str, str]) -> str:
    """Return the address of the page of a syncer or an import, relative to the first page."""
    parts = [quote(part, safe="") for part in (kind, *ref)]
    return "/".join(parts)


def rows_of(report: PassReport) -> list[Row]:
    """Return the rows of all syncers and imports, the worst first."""
    rows = [*_of_syncers(report), *_of_other_classes(report), *_of_imports(report)]
    states = list(State)

    def order(row: Row) -> tuple[int, bool, str, str]:
        return states.index(row.state), row.serves, row.namespace, row.name

    return sorted(rows, key=order)


def _of_syncers(report: PassReport) -> Iterator[Row]:
    """Yield a row for each syncer of this class."""
    for ref, claim in claims_in(report).items():
        status = report.all_statuses.get(ref)
        if status is None and isinstance(claim, Deleting):
            continue  # its finalizer was removed, so it is gone
        reason, why = account(report, ref, claim)
        told = _most_urgent(status)
        if told is not None:
            reason = told.reason
            why = told.message
        row = Row(
            kind=Kind.SYNCER,
            namespace=ref.namespace,
            name=ref.name,
            state=_state(status),
            reason=reason,
            why=why,
            since=claim.syncer.deleted or _since(status, reason, claim.syncer.created),
            status=status,
            claim=claim,
        )
        if status is None:
            yield row
            continue
        row = replace(row, apps=status.apps, ready=status.ready, serves=status.up > 0)
        # One ready pod makes a syncer Ready. The others still need somebody.
        if row.state is State.READY and status.up < status.desired:
            row = replace(row, state=State.PROBLEM)
        yield row


def _of_other_classes(report: PassReport) -> Iterator[Row]:
    for ref, why in of_other_classes(report):
        yield Row(
            kind=Kind.SYNCER,
            namespace=ref.namespace,
            name=ref.name,
            state=State.OTHER_CLASS,
            reason=Reason.OTHER_CLASS,
            why=why,
        )


def _of_imports(report: PassReport) -> Iterator[Row]:
    """Yield a row for each import; none if imports are off."""
    if report.imports is None:
        return
    for ref, claim in report.imports.claims.items():
        status = report.imports.all_statuses.get(ref)
        if status is None and isinstance(claim, Ending):
            continue  # as of a syncer
        reason, why = _account_of_import(claim, status)
        row = Row(
            kind=Kind.IMPORT,
            namespace=ref.namespace,
            name=ref.name,
            state=_state(status),
            reason=reason,
            why=why,
            since=claim.import_.deleted or _since(status, reason, claim.import_.created),
            status=status,
            claim=claim,
        )
        if isinstance(claim, Importing):
            name = claim.spec.app or claim.spec.vip_address or ""
            row = replace(row, apps=(name,))
        if status is not None:
            row = replace(row, ready=status.ready)
        yield row


def _account_of_import(claim: ImportClaim, status: CustomStatus | None) -> tuple[str, str]:
    """Return the reason and the message of an import; empty without any."""
    if isinstance(claim, NotImported):
        return claim.reason, claim.message
    told = _most_urgent(status)
    if told is None and status is not None:
        told = status.condition("Ready")
    if told is None:
        return "", ""
    return told.reason, told.message


def _state(status: CustomStatus | None) -> State:
    """Return the state that the conditions show.

    | Ready         | any other condition tells of a problem | state     |
    |---------------|----------------------------------------|-----------|
    | False         | any                                    | NOT_READY |
    | Unknown, none | any                                    | UNKNOWN   |
    | True          | yes                                    | PROBLEM   |
    | True          | no                                     | READY     |
    """
    if status is None:
        return State.UNKNOWN
    ready = status.condition("Ready")
    if ready is None or ready.status is ConditionStatus.UNKNOWN:
        return State.UNKNOWN
    if ready.status is ConditionStatus.FALSE:
        return State.NOT_READY
    if _most_urgent(status) is None:
        return State.READY
    return State.PROBLEM


def _most_urgent(status: CustomStatus | None) -> Condition | None:
    """Return the condition that a person should read first; None if Ready says it all."""
    if status is None:
        return None
    for type_ in ("RemovalHeld", "Conflict"):
        condition = status.condition(type_)
        if condition is not None and condition.status is ConditionStatus.TRUE:
            return condition
    ready = status.condition("Ready")
    if ready is None or ready.status is not ConditionStatus.TRUE:
        return None
    synced = status.condition("Synced")
    if synced is None or synced.status is ConditionStatus.TRUE:
        return None
    return synced


def _since(status: CustomStatus | None, reason: str, created: float) -> float | None:
    """Return since when the reason holds, in Unix seconds: as a condition with this reason says, or
    else Ready. Without a status, since the creation."""
    if status is None or not status.conditions:
        return created
    times: list[float] = []
    for condition in status.conditions:
        if condition.reason == reason:
            times.append(condition.last_transition)
    if times:
        return max(times)
    ready = status.condition("Ready")
    if ready is None:
        return None
    return ready.last_transition
