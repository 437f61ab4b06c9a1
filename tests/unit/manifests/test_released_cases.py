"""What the CRD of a release accepted, today's CRD accepts."""

from __future__ import annotations

import pytest

from eurekube_sync.manifests.documents import Severity
from tests.cases import Case, released_cases, validate_object


@pytest.mark.parametrize("case", released_cases(), ids=lambda case: case.name)
def test_a_new_crd_refuses_nothing_that_a_release_accepted(case: Case) -> None:
    """A stored syncer that it refused would take no write before Kubernetes 1.30, not even of its
    finalizer. First a release has to warn."""
    errors = [
        finding for finding in validate_object(case.manifest) if finding.severity is Severity.ERROR
    ]
    assert errors == []
