"""The exit codes, one per meaning, and how a pass comes to one. docs/commands.md has them as a table."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import assert_never

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Frozen
from eurekube_sync.model.errors import (
    ClusterDenied,
    ClusterError,
    ClusterRejected,
    ClusterUnavailable,
    ConfigurationError,
    CrdUnusable,
    EurekubeError,
    NothingThere,
    NotKept,
    OwnerClash,
    RegistryDenied,
    RegistryError,
    RegistryUnavailable,
    RegistryUnusable,
    StillRenewed,
    Stopped,
)
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.observe.kubernetes import unknown_sources, unread


class ExitCode(IntEnum):
    """What the process tells its caller. `meaning` is the sentence of the documentation."""

    OK = 0
    INTERNAL_ERROR = 1
    USAGE = 2
    CONFIGURATION = 3
    INVALID_MANIFEST = 4
    CHANGES_PENDING = 5
    CLUSTER_UNAVAILABLE = 10
    CLUSTER_DENIED = 11
    CLUSTER_UNUSABLE = 12
    CRD_MISSING = 13
    CRD_TERMINATING = 14
    REGISTRY_UNAVAILABLE = 20
    REGISTRY_DENIED = 21
    REGISTRY_UNUSABLE = 22
    ACTIONS_FAILED = 30
    REMOVALS_HELD = 31
    OWNER_CLASH = 32
    CUT_SHORT = 33
    ORPHANS_UNKNOWN = 34
    STILL_RENEWED = 35
    NOTHING_THERE = 36
    NOT_KEPT = 37
    DECLINED = 38
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """One sentence for the documentation."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done; Eureka holds what the cluster says, but for syncers that their condition says are in trouble",
    ExitCode.INTERNAL_ERROR: "a bug; set `EUREKUBE_SYNC_DEBUG=1` to see the traceback",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.CONFIGURATION: (
        "a file or kubeconfig that was given is wrong; `run` still renewed where "
        "what `--approve` names is of another cluster or too old"
    ),
    ExitCode.INVALID_MANIFEST: "`validate` found a manifest that the API server would refuse, or no syncer at all",
    ExitCode.CHANGES_PENDING: "with `--detailed-exitcode`: `run --dry-run` found changes to make, `orphans` found some",
    ExitCode.CLUSTER_UNAVAILABLE: "the Kubernetes API did not answer; what is ours was renewed, nothing withdrawn",
    ExitCode.CLUSTER_DENIED: "the Kubernetes API refused (401, 403): what hangs on a list was renewed, not withdrawn",
    ExitCode.CLUSTER_UNUSABLE: "the Kubernetes API gave an answer that makes no sense; renewed, nothing withdrawn",
    ExitCode.CRD_MISSING: "the CRD is not installed; what is ours was renewed, nothing withdrawn",
    ExitCode.CRD_TERMINATING: (
        "the CRD is being deleted, or was installed after a deletion; what is ours was renewed, nothing withdrawn"
    ),
    ExitCode.REGISTRY_UNAVAILABLE: "Eureka did not answer, or is still warming up; nothing withdrawn",
    ExitCode.REGISTRY_DENIED: "Eureka refused the login, or its CSRF protection the writes; nothing withdrawn",
    ExitCode.REGISTRY_UNUSABLE: "no Eureka answers there: HTML, an empty or cut body, a wrong URL; nothing withdrawn",
    ExitCode.ACTIONS_FAILED: (
        "some actions failed, the others were done; the next pass tries again; with `--fail-on-broken`: "
        "a syncer cannot be served"
    ),
    ExitCode.REMOVALS_HELD: "the brake held the removals of this pass, or `--approve` named others; the rest was done",
    ExitCode.OWNER_CLASH: (
        "another cluster uses the same owner name, or another owner serves the same syncers (a typo in `--owner`); "
        "`run` renewed what is ours, nothing else was done"
    ),
    ExitCode.CUT_SHORT: "the pass ended before all was tried: its deadline, or a signal",
    ExitCode.ORPHANS_UNKNOWN: "`orphans` did not see all of the cluster, or a Eureka peer: there may be more",
    ExitCode.STILL_RENEWED: "an `owner` command refused, for somebody else renews the instances; nothing was changed",
    ExitCode.NOTHING_THERE: "there is no such instance, syncer or owner; nothing was changed",
    ExitCode.NOT_KEPT: "an `owner` command refused, for `run` would undo it at once; nothing was changed",
    ExitCode.DECLINED: "`owner purge` asked, and the answer was no; nothing was changed",
    ExitCode.INTERRUPTED: "interrupted at the keyboard",
}


def of_report(report: PassReport, *, fail_on_held: bool, detailed: bool, fail_on_broken: bool = False) -> ExitCode:
    """The exit code of one pass: what a person has to see to first, first."""
    if report.clashes or any(other.stops_us for other in report.other_owners):
        return ExitCode.OWNER_CLASH
    failed = [source.cause for _, source in unknown_sources(report.view)]
    # A right to look for drains that nobody grants is told, and no failure: it must not stop a rollout.
    failed += [source.cause for _, source in unread(report.view) if source.cause is not Cause.DENIED]
    if failed:
        return _of_cluster(failed[0])
    if isinstance(report.registry, Unknown):
        return _of_registry(report.registry.cause)
    if report.approval_refused is not None:
        return ExitCode.CONFIGURATION
    if report.cut_short:
        return ExitCode.CUT_SHORT
    if report.outcomes.failures:
        causes = [outcome.cause for outcome in report.outcomes.failures]
        return of_failures(causes, succeeded=report.outcomes.succeeded)
    if report.cluster_errors:
        return of_error(report.cluster_errors[0])
    if any(not blocked.conflict for blocked in report.plan.blocked):
        return ExitCode.ACTIONS_FAILED
    if _unreleased(report) or (report.held is not None and fail_on_held):
        return ExitCode.REMOVALS_HELD
    if fail_on_broken and _broken(report):
        return ExitCode.ACTIONS_FAILED
    if detailed and report.dry_run and report.plan.changes:
        return ExitCode.CHANGES_PENDING
    return ExitCode.OK


def _broken(report: PassReport) -> bool:
    """Whether a syncer cannot be served, and it is not for a list that failed."""
    claims = report.desired.claims.values() if report.desired else ()
    return any(isinstance(claim, Frozen) and not claim.unknown for claim in claims)


def _unreleased(report: PassReport) -> bool:
    """Whether a person released removals that were not made: the brake holds others, or they are not planned now."""
    return report.approved is not None and (report.held is not None or not report.released)


def of_error(error: EurekubeError) -> ExitCode:
    """The exit code of an error that ended the program."""
    match error:
        case ConfigurationError():
            return ExitCode.CONFIGURATION
        case ClusterUnavailable():
            return ExitCode.CLUSTER_UNAVAILABLE
        case ClusterDenied():
            return ExitCode.CLUSTER_DENIED
        case ClusterError():
            return ExitCode.ACTIONS_FAILED
        case RegistryUnavailable():
            return ExitCode.REGISTRY_UNAVAILABLE
        case RegistryDenied():
            return ExitCode.REGISTRY_DENIED
        case RegistryError():
            return ExitCode.REGISTRY_UNUSABLE
        case CrdUnusable():
            return ExitCode.CRD_TERMINATING if error.terminating else ExitCode.CRD_MISSING
        case Stopped():
            return ExitCode.CUT_SHORT
        case StillRenewed():
            return ExitCode.STILL_RENEWED
        case NothingThere():
            return ExitCode.NOTHING_THERE
        case NotKept():
            return ExitCode.NOT_KEPT
        case OwnerClash():
            return ExitCode.OWNER_CLASH
        case _:
            return ExitCode.INTERNAL_ERROR


def of_failures(causes: Collection[Cause | None], *, succeeded: int) -> ExitCode:
    """The exit code of some calls to Eureka that failed, beside so many that did what they were to do."""
    if set(causes) == {Cause.DENIED}:
        return ExitCode.REGISTRY_DENIED
    if Cause.UNAVAILABLE in causes and succeeded == 0:
        return ExitCode.REGISTRY_UNAVAILABLE
    return ExitCode.ACTIONS_FAILED


def cluster_error(unknown: Unknown) -> EurekubeError:
    """What a source of the cluster that cannot be read is to a command that needs it."""
    match unknown.cause:
        case Cause.UNAVAILABLE:
            return ClusterUnavailable(unknown.message)
        case Cause.DENIED:
            return ClusterDenied(unknown.message)
        case Cause.CRD_MISSING | Cause.CRD_TERMINATING:
            return CrdUnusable(unknown.message, terminating=unknown.cause is Cause.CRD_TERMINATING)
        case Cause.UNUSABLE | Cause.NOT_READ:
            return ClusterRejected(unknown.message)
        case _:
            assert_never(unknown.cause)


def registry_error(unknown: Unknown) -> RegistryError:
    """The same of Eureka."""
    match unknown.cause:
        case Cause.DENIED:
            return RegistryDenied(unknown.message)
        case Cause.UNUSABLE:
            return RegistryUnusable(unknown.message)
        case _:
            return RegistryUnavailable(unknown.message)


def _of_cluster(cause: Cause) -> ExitCode:
    match cause:
        case Cause.UNAVAILABLE:
            return ExitCode.CLUSTER_UNAVAILABLE
        case Cause.DENIED:
            return ExitCode.CLUSTER_DENIED
        case Cause.UNUSABLE | Cause.NOT_READ:
            return ExitCode.CLUSTER_UNUSABLE
        case Cause.CRD_MISSING:
            return ExitCode.CRD_MISSING
        case Cause.CRD_TERMINATING:
            return ExitCode.CRD_TERMINATING
        case _:
            assert_never(cause)


def _of_registry(cause: Cause) -> ExitCode:
    match cause:
        case Cause.DENIED:
            return ExitCode.REGISTRY_DENIED
        case Cause.UNUSABLE:
            return ExitCode.REGISTRY_UNUSABLE
        case _:
            return ExitCode.REGISTRY_UNAVAILABLE
