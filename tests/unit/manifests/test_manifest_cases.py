"""The tables of cases, without a server."""

from __future__ import annotations

import pytest

from eurekube_sync.manifests.documents import Severity
from tests.cases import Case, all_cases, validate_object

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case_is_accepted_or_refused_as_the_table_says(case: Case) -> None:
    """A refused case also has the path and the reason of the table."""
    errors = [
        finding for finding in validate_object(case.manifest) if finding.severity is Severity.ERROR
    ]
    if case.accepted:
        assert errors == []
    else:
        assert [f for f in errors if f.path.startswith(case.path) and case.reason in f.reason], (
            errors
        )


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert len(names) >= 80


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.accepted], ids=lambda case: case.name
)
def test_reasons_are_sentences(case: Case) -> None:
    """A reason is short, not empty, and ends without a full stop."""
    for finding in validate_object(case.manifest):
        assert finding.reason
        assert not finding.reason.endswith(".")
        assert len(finding.reason) < 320
