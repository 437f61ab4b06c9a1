"""The exit codes, and which one an error or a problem has. docs/commands.md has them as a table.
It imports no stage of a pass, because `--help` and the completion of a shell need it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum

from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Server


class ExitCode(IntEnum):
    """An exit code, with its sentence in the documentation, and what to do, as
    docs/troubleshooting.md says it."""

    meaning: str
    cure: str

    def __new__(cls, value: int, meaning: str, cure: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning, code.cure = meaning, cure
        return code

    OK = (
        0,
        "done, even if a syncer is not served: see `status`",
        "If a caller misses an app all the same, `eurekube-sync status` shows each syncer that is "
        "not served.",
    )
    INTERNAL_ERROR = (
        1,
        "an unexpected error, which is a bug; `EUREKUBE_SYNC_DEBUG=1` shows the traceback",
        "Run the program again with `EUREKUBE_SYNC_DEBUG=1`, and report the traceback.",
    )
    USAGE = (
        2,
        "the command line is wrong",
        "Correct the option that the message names.",
    )
    CONFIGURATION = (
        3,
        "a file, URL or kubeconfig is wrong, or a single pass of `run` was only for namespaces "
        "that do not exist. Also: the plan id of `--approve` was given more than "
        "an hour ago. `run` "
        "then released nothing, and did the rest",
        "Correct what the message names. If it is `--approve`, give the plan id of now.",
    )
    INVALID_MANIFEST = (
        4,
        "`validate`, or `run --dry-run --filename`, found a manifest that the API server or `run` "
        "would refuse, or `validate` no syncer at all",
        "Correct the lines of the manifest that the message lists.",
    )
    CHANGES_PENDING = (
        5,
        "with `--detailed-exitcode`: `run --dry-run` found changes, or `orphans` found an orphan",
        "For `run`, look at the plan, then run without `--dry-run`. For `orphans`, see [its "
        "page](owner.md#orphans).",
    )
    NOT_REGISTERED = (
        6,
        "`explain`: not every instance is registered and UP, or there is none. `status`: a syncer "
        "has no UP "
        "instance or is only partly in sync, or a namespace of `-n` does not exist",
        "Do what the line `Next:` of `explain` says.",
    )
    CHECK_FAILED = (
        7,
        "`check` found a fault that keeps a pass from its work",
        "Do what the lines of the failed checks say; see [checks](#checks).",
    )
    NOT_WRITTEN = (
        8,
        "the output could not be written, such as on a full disk. What else was to be done was done",
        "Make room where the output goes, and run the command again.",
    )
    KUBERNETES_UNREAD = (
        10,
        "Kubernetes could not be read: no answer, an answer that makes no sense, or the CRD is "
        "missing or being "
        "deleted. `run` renewed the instances that depend on what was not read, and removed none "
        "of them",
        'Check the kubeconfig, the network and the CRD. If the message begins with "no '
        'credentials", nothing was called, because the call would have been anonymous: do '
        "what the program for the credentials says, or correct the file that the message "
        "names. The next pass tries again.",
    )
    KUBERNETES_DENIED = (
        11,
        "Kubernetes refused us (401, 403). `run` renewed the instances that depend on a refused "
        "list, and removed none "
        "of them",
        "Grant the right that the message names, as in [the installation](install.md).",
    )
    EUREKA_UNREAD = (
        20,
        "Eureka could not be read: it gave no answer, it has just started, or another program "
        "answers at its URL. "
        "`explain`, `status`: no `--eureka-url` was given. Nothing was removed",
        "Check that the server runs, and that the URL ends in `/eureka`, or in `/eureka/v2` "
        "with Netflix's own server. If the server has just started, wait some minutes.",
    )
    EUREKA_DENIED = (
        21,
        "Eureka refused the login, or its CSRF protection refused the writes. Nothing was removed",
        "Correct the login, the server's CSRF protection, or the proxy that refuses writes: "
        "see [login and TLS](connection.md#login-and-tls).",
    )
    INCOMPLETE = (
        30,
        "some changes failed, or a deadline, a signal or a lost lock ended the pass early; the "
        "next pass tries "
        "again. `orphans`: not everything could be read",
        "Wait for the next pass. If the code stays, see what the report names. If the "
        'finalizer of a syncer "cannot be written until somebody mends its spec", correct the '
        "field that the message names, also if the syncer is being deleted: before 1.30, "
        "Kubernetes takes no other write of a syncer that the CRD refuses.",
    )
    REMOVAL_HELD = (
        31,
        "removals are held, or `--approve` released nothing, because this pass plans no removals "
        "of that plan. "
        "Everything else was done",
        "[Look, then approve](brake.md) the held removals.",
    )
    OWNER_CLASH = (
        32,
        "another cluster uses the same owner name, or another owner serves the same syncers. "
        "`run` only renewed "
        "instances",
        "Give each cluster its own owner, as for [OwnerClash](#ownerclash). If this cluster "
        "replaces the other one, use [`run --former-cluster`](owner.md#a-rebuilt-cluster).",
    )
    REFUSED = (
        33,
        "`orphans`: Eureka holds no instance of the owner. `purge`: you answered no. Nothing was "
        "changed",
        "Read the message, which says why nothing was changed.",
    )
    APP_LOST = (
        34,
        "an app has no UP instance in Eureka any more, although endpoints of it are ready: "
        "something other than a "
        "person's wish keeps them from being registered. The condition `Ready` has the reason "
        "`LastInstanceLost`, and "
        "says what. Everything else was done. Also the last code of a `--daemon`",
        "See to the reason in the message of each syncer with the reason "
        "[LastInstanceLost](#lastinstancelost).",
    )
    INTERRUPTED = (
        130,
        "interrupted at the keyboard, which is safe at any moment of a pass",
        "",
    )


_UNREAD = (Cause.UNAVAILABLE, Cause.UNUSABLE, Cause.NOT_READ)
CODES: Mapping[tuple[Server | None, Cause | None], ExitCode] = {
    (None, Cause.CONFIGURATION): ExitCode.CONFIGURATION,
    (None, Cause.STOPPED): ExitCode.INCOMPLETE,
    (None, Cause.LOCK_LOST): ExitCode.INCOMPLETE,
    (None, Cause.REFUSED): ExitCode.REFUSED,
    (None, Cause.OWNER_CLASH): ExitCode.OWNER_CLASH,
    **{
        (Server.KUBERNETES, cause): ExitCode.KUBERNETES_UNREAD
        for cause in (*_UNREAD, Cause.CRD_MISSING, Cause.CRD_TERMINATING, Cause.API_MISSING)
    },
    (Server.KUBERNETES, Cause.DENIED): ExitCode.KUBERNETES_DENIED,
    (Server.KUBERNETES, None): ExitCode.INCOMPLETE,
    **{(Server.EUREKA, cause): ExitCode.EUREKA_UNREAD for cause in _UNREAD},
    (Server.EUREKA, Cause.DENIED): ExitCode.EUREKA_DENIED,
    (Server.EUREKA, None): ExitCode.INCOMPLETE,
}
"""By server and cause; a server without a cause refused one object. Anything else is an unexpected
error."""


OF_A_PASS: Mapping[Reason, ExitCode] = {
    Reason.OWNER_CLASH: ExitCode.OWNER_CLASH,
    Reason.APPROVAL_REFUSED: ExitCode.CONFIGURATION,
    Reason.CUT_SHORT: ExitCode.INCOMPLETE,
    Reason.FORMER_OWNER_UNREAD: ExitCode.INCOMPLETE,
    Reason.WRITE_FAILED: ExitCode.INCOMPLETE,
    Reason.NOT_READ_AGAIN: ExitCode.INCOMPLETE,
    Reason.LAST_INSTANCE_LOST: ExitCode.APP_LOST,
    Reason.NOTHING_RELEASED: ExitCode.REMOVAL_HELD,
    Reason.REMOVAL_HELD: ExitCode.REMOVAL_HELD,
}
"""By the reason of a problem that is of no server as a whole."""


def of_problem(problem: Problem) -> ExitCode | None:
    """Return the exit code of a problem of the pass; None if it is no failure."""
    if problem.server is not None:
        return of_cause(problem.server, Cause(problem.reason))
    return OF_A_PASS.get(problem.reason)


def of_error(error: EurekubeError) -> ExitCode:
    """Return the exit code of an error that ended the program."""
    return of_cause(error.server, error.cause)


def of_cause(server: Server | None, cause: Cause | None) -> ExitCode:
    """Return the exit code of a failure, such as a source that could not be read."""
    return CODES.get((server, cause), ExitCode.INTERNAL_ERROR)


def of_failures(causes: Collection[Cause | None], *, succeeded: int) -> ExitCode:
    """Return the exit code of failed calls to Eureka, beside a number that `succeeded`."""
    if set(causes) == {Cause.DENIED}:
        return ExitCode.EUREKA_DENIED
    if Cause.UNAVAILABLE in causes and not succeeded:
        return ExitCode.EUREKA_UNREAD
    return ExitCode.INCOMPLETE
