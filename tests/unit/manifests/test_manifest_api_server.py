"""The embedded API server: what it refuses, and its messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.manifests.documents import Severity
from eurekube_sync.manifests.validation import refusal
from tests.cases import Case, manifest_of, syncer_cases, validate_object
from tests.cases.specs import specs
from tests.embedded.kubernetes import FullKubernetes

SYNCERS = "/apis/eurekube.io/v1/namespaces/default/eurekasyncers"
APP = {"app": "x"}


def test_a_refusal_names_the_field_and_says_in_the_words_of_validate_what_to_write() -> None:
    """`kubectl apply` prints both."""
    server = FullKubernetes(lambda: 1_767_323_045.0, definitions=[load_crd()], validate=refusal)
    status, body = server.call(
        "POST", SYNCERS, manifest_of({"selector": APP, "mode": "pods", "port": 99999})
    )
    mode = 'spec.mode: must be pod or service, not "pods"; did you mean "pod"?'
    why = f"[{mode}, spec.port: 99999 is not allowed: maximum is 65535]"
    assert (status, body["message"]) == (422, f'EurekaSyncer.eurekube.io "case" is invalid: {why}')
    twice = manifest_of({"selector": APP, "port": "http", "securePort": "http"})
    fault = (
        "spec.securePort",
        "FieldValueInvalid",
        "securePort must differ from port (both are http)",
    )
    assert refusal(twice) == (fault,)


@pytest.mark.parametrize("case", syncer_cases(), ids=lambda case: case.name)
def test_the_embedded_server_takes_what_validate_takes(case: Case) -> None:
    """Under strict field validation each case of the table has the table's verdict."""
    server = FullKubernetes(lambda: 1_767_323_045.0, definitions=[load_crd()], validate=refusal)
    status, body = server.call("POST", SYNCERS, case.manifest, fieldValidation="Strict")
    assert (status == 201) is case.accepted, body


@given(spec=specs())
def test_a_random_spec_is_refused_where_validate_finds_an_error(spec: Any) -> None:
    """Both use one schema and one parser. Unknown fields are dropped before."""
    faults = [one for one in validate_object(manifest_of(spec)) if one.severity is Severity.ERROR]
    judged = any("unknown field" not in one.reason for one in faults)
    if judged or not faults:
        assert bool(refusal(manifest_of(spec))) is judged


def test_an_update_is_judged_by_what_it_changes() -> None:
    """An object from an older CRD may get a finalizer, a label and a status, but no new fault."""
    server = FullKubernetes(lambda: 1_767_323_045.0, definitions=[load_crd()], validate=refusal)
    path = f"{SYNCERS}/case"
    manifest = manifest_of({"selector": APP, "mode": "pods", "port": 0})
    assert server.call("POST", SYNCERS, manifest)[0] == 422
    with server.older_definition():
        assert server.call("POST", SYNCERS, manifest)[0] == 201
    finalizers = {"metadata": {"finalizers": ["eurekube.io/cleanup"], "labels": {"a": "b"}}}
    assert server.call("PATCH", path, finalizers)[0] == 200
    assert server.call("PATCH", f"{path}/status", {"status": {"up": 1}})[0] == 200
    assert server.call("PATCH", path, {"spec": {"appName": "a"}})[0] == 200
    assert server.call("PATCH", path, {"spec": {"port": -1}})[0] == 422
    assert server.call("PATCH", path, {"metadata": {"labels": {"a": "b c"}}})[0] == 422
    assert server.call("PATCH", f"{path}/status", {"status": {"up": "many"}})[0] == 422
    assert server.call("PATCH", path, {"spec": {"mode": "pod", "port": 80}})[0] == 200


def test_unknown_fields_are_a_warning_or_under_strict_validation_a_refusal() -> None:
    """They are in the spec, in the metadata, or beside them. The real server does the same."""
    server = FullKubernetes(lambda: 1_767_323_045.0, definitions=[load_crd()], validate=refusal)
    manifest = {**manifest_of({"selector": APP, "prot": 1}), "sepc": {}}
    manifest["metadata"]["lables"] = {}
    status, body = server.call("POST", SYNCERS, manifest, fieldValidation="Strict", dryRun="All")
    unknown = 'unknown field "sepc", unknown field "spec.prot", unknown field "metadata.lables"'
    assert (status, body["message"].partition("strict decoding error: ")[2]) == (400, unknown)
    status, body = server.call("POST", SYNCERS, manifest)
    assert (status, body["spec"]) == (201, {"mode": "pod", "selector": APP})
    assert "lables" not in body["metadata"]
