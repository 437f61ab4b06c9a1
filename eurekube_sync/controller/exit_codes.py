"""The exit codes, and which one a pass ends with. docs/commands.md has them as a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import NotServed
from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.observe.kubernetes import unknown_sources, unread


class ExitCode(IntEnum):
    """An exit code. `meaning` is its sentence in the documentation."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code

    OK = (0, "done, even if a syncer is not served: see `--fail-on-broken`")
    INTERNAL_ERROR = (
        1,
        "an unexpected error, which is a bug; `EUREKUBE_SYNC_DEBUG=1` shows the traceback",
    )
    USAGE = (2, "the command line is wrong")
    CONFIGURATION = (
        3,
        "a file, URL or kubeconfig is wrong. Also: the file of `--approve` is too old, or of "
        "another cluster. `run` "
        "then released nothing, and did the rest",
    )
    INVALID_MANIFEST = (
        4,
        "`validate` found a manifest that the API server or `run` would refuse, or no syncer at "
        "all",
    )
    CHANGES_PENDING = (
        5,
        "with `--detailed-exitcode`: `run --dry-run` found changes, or `orphans` found an orphan",
    )
    NOT_REGISTERED = (
        6,
        "`explain`: not every instance is registered and UP, or there is none. `status`: a syncer "
        "has no UP "
        "instance or is only partly in sync, or a namespace of `-n` does not exist",
    )
    CHECK_FAILED = (7, "`check` found a fault that keeps a pass from its work")
    KUBERNETES_UNREAD = (
        10,
        "Kubernetes could not be read: no answer, an answer that makes no sense, or the CRD is "
        "missing or being "
        "deleted. `run` renewed the instances that depend on what was not read, and removed none "
        "of them",
    )
    KUBERNETES_DENIED = (
        11,
        "Kubernetes refused us (401, 403). `run` renewed the instances that depend on a refused "
        "list, and removed none "
        "of them",
    )
    EUREKA_UNREAD = (
        20,
        "Eureka could not be read: it gave no answer, it has just started, or another program "
        "answers at its URL. "
        "`explain`, `status`: no `--eureka-url` was given. Nothing was removed",
    )
    EUREKA_DENIED = (
        21,
        "Eureka refused the login, or its CSRF protection refused the writes. Nothing was removed",
    )
    INCOMPLETE = (
        30,
        "some changes failed, or a deadline, a signal or a lost lock ended the pass early; the "
        "next pass tries "
        "again. `orphans`: not everything could be read. `--fail-on-broken`: a syncer is not "
        "served. `replay`: this "
        "version plans the pass differently from the version that recorded it",
    )
    REMOVAL_HELD = (
        31,
        "removals are held, or `--approve` released nothing, because this pass plans no removals "
        "of that plan. "
        "Everything else was done",
    )
    OWNER_CLASH = (
        32,
        "another cluster uses the same owner name, or another owner serves the same syncers. "
        "`run` only renewed "
        "instances",
    )
    REFUSED = (
        33,
        "`orphans`: Eureka holds no instance of the owner. `purge`: you answered no. Nothing was "
        "changed",
    )
    APP_LOST = (
        34,
        "an app has no UP instance in Eureka any more, although endpoints of it are ready: "
        "something other than a "
        "person's wish keeps them from being registered. The condition `Ready` has the reason "
        "`LastInstanceLost`, and "
        "says what. Everything else was done. Also the last code of a `--daemon`",
    )
    INTERRUPTED = (130, "interrupted at the keyboard")


_UNREAD = (Cause.UNAVAILABLE, Cause.UNUSABLE, Cause.NOT_READ)
CODES: Mapping[tuple[Server | None, Cause | None], ExitCode] = {
    (None, Cause.CONFIGURATION): ExitCode.CONFIGURATION,
    (None, Cause.STOPPED): ExitCode.INCOMPLETE,
    (None, Cause.LOCK_LOST): ExitCode.INCOMPLETE,
    (None, Cause.REFUSED): ExitCode.REFUSED,
    (None, Cause.OWNER_CLASH): ExitCode.OWNER_CLASH,
    **{
        (Server.KUBERNETES, cause): ExitCode.KUBERNETES_UNREAD
        for cause in (*_UNREAD, Cause.CRD_MISSING, Cause.CRD_TERMINATING)
    },
    (Server.KUBERNETES, Cause.DENIED): ExitCode.KUBERNETES_DENIED,
    (Server.KUBERNETES, None): ExitCode.INCOMPLETE,
    **{(Server.EUREKA, cause): ExitCode.EUREKA_UNREAD for cause in _UNREAD},
    (Server.EUREKA, Cause.DENIED): ExitCode.EUREKA_DENIED,
    (Server.EUREKA, None): ExitCode.INCOMPLETE,
}
"""By server and cause; a server without a cause refused one object. Anything else is an unexpected
error."""


def of_report(
    report: PassReport, *, fail_on_held: bool, detailed: bool, fail_on_broken: bool = False
) -> ExitCode:
    """Gives the exit code of a pass. If several things are wrong, the first to see to decides."""
    if report.clashes or any(other.stops_us for other in report.other_owners):
        return ExitCode.OWNER_CLASH
    failed = [source.cause for _, source in unknown_sources(report.view)]
    # A missing right to read drains is reported, and is no failure: it must not stop a rollout.
    failed += [
        source.cause for _, source in unread(report.view) if source.cause is not Cause.DENIED
    ]
    if failed:
        return of_cause(Server.KUBERNETES, failed[0])
    if isinstance(report.registry, Unknown):
        return of_cause(Server.EUREKA, report.registry.cause)
    if report.approval_refused is not None:
        return ExitCode.CONFIGURATION
    if report.cut_short:
        return ExitCode.INCOMPLETE
    if report.outcomes.failures:
        causes = [outcome.cause for outcome in report.outcomes.failures]
        return of_failures(causes, succeeded=report.outcomes.succeeded)
    if report.cluster_errors:
        return of_error(report.cluster_errors[0])
    if any(not blocked.conflict for blocked in report.plan.blocked):
        return ExitCode.INCOMPLETE
    if report.lost:
        return ExitCode.APP_LOST
    # A person released removals that were not made: the brake holds others, or they are not planned
    # now.
    unreleased = report.approved is not None and (report.held is not None or not report.released)
    if unreleased or (report.held is not None and fail_on_held):
        return ExitCode.REMOVAL_HELD
    claims = report.desired.claims.values() if report.desired else ()
    if fail_on_broken and any(
        isinstance(claim, NotServed) and not claim.unknown for claim in claims
    ):
        return ExitCode.INCOMPLETE
    if detailed and report.settings.dry_run and report.plan.changes:
        return ExitCode.CHANGES_PENDING
    return ExitCode.OK


def of_error(error: EurekubeError) -> ExitCode:
    """Gives the exit code of an error that ended the program."""
    return of_cause(error.server, error.cause)


def of_cause(server: Server | None, cause: Cause | None) -> ExitCode:
    """Gives the exit code of a failure, such as a source that could not be read."""
    return CODES.get((server, cause), ExitCode.INTERNAL_ERROR)


def of_failures(causes: Collection[Cause | None], *, succeeded: int) -> ExitCode:
    """Gives the exit code of failed calls to Eureka, beside a number that `succeeded`."""
    if set(causes) == {Cause.DENIED}:
        return ExitCode.EUREKA_DENIED
    return (
        ExitCode.EUREKA_UNREAD
        if Cause.UNAVAILABLE in causes and not succeeded
        else ExitCode.INCOMPLETE
    )
