"""Exit codes: one table maps each cause to its code."""

from __future__ import annotations

import pytest

from eurekube_sync.controller.exit_codes import CODES, ExitCode, of_error
from eurekube_sync.model import errors
from eurekube_sync.model.errors import EurekubeError, InvalidSyncer, SourceUnknown
from eurekube_sync.model.sources import Cause, Server, Unknown

BLOCKS_ONE_SYNCER = InvalidSyncer
OURS = {Cause.CONFIGURATION, Cause.STOPPED, Cause.REFUSED, Cause.OWNER_CLASH, Cause.LOCK_LOST}
"""Causes that belong to no server."""
KUBERNETES_ONLY = {Cause.CRD_MISSING, Cause.CRD_TERMINATING, Cause.API_MISSING}


def test_each_cause_has_a_code_on_each_server_that_can_have_it() -> None:
    """No expected error ends as an unexpected one."""
    expected: set[tuple[Server | None, Cause | None]] = {(None, cause) for cause in OURS}
    expected |= {(Server.KUBERNETES, cause) for cause in {None, *Cause} - OURS}
    expected |= {(Server.EUREKA, cause) for cause in {None, *Cause} - OURS - KUBERNETES_ONLY}
    assert set(CODES) == expected
    assert ExitCode.INTERNAL_ERROR not in CODES.values()


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, EurekubeError)
        and kind not in (EurekubeError, SourceUnknown, BLOCKS_ONE_SYNCER)
    ],
)
def test_each_error_that_may_end_the_program_has_a_code(kind: type[EurekubeError]) -> None:
    """The class of the error decides."""
    assert of_error(kind("why")) is not ExitCode.INTERNAL_ERROR


@pytest.mark.parametrize(("server", "cause"), [key for key in CODES if all(key)])
def test_a_source_that_a_command_needs_has_the_code_of_its_cause(
    server: Server, cause: Cause
) -> None:
    """A pass uses the same codes."""
    error = SourceUnknown(server, Unknown(cause=cause, message="why"))
    assert (str(error), of_error(error)) == ("why", CODES[server, cause])


def test_an_error_without_a_cause_is_a_bug() -> None:
    """It has a code of its own."""
    assert of_error(EurekubeError("?")) is ExitCode.INTERNAL_ERROR
