"""Validation of texts: what is checked, what is skipped, and where a finding is."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.desired.claims import NotServed
from eurekube_sync.manifests.documents import Report, Severity
from eurekube_sync.manifests.validation import refusal, validate_text
from tests.cases import manifest_of, validate_object
from tests.cases.specs import specs
from tests.unit.worlds.build import REF, desired, service, syncer

HEAD = "apiVersion: eurekube.io/v1\nkind: EurekaSyncer\nmetadata: {name: rating}\nspec:\n"


def said(report: Report) -> list[str]:
    """Findings as `line severity path reason`."""
    return [f"{f.line} {f.severity} {f.path} {f.reason}" for f in report.findings]


def test_lines_and_paths() -> None:
    """A finding is on the line of its field. For a missing field it is on the parent's line."""
    text = HEAD + "  selector:\n    ap: rating\n  metadata:\n    a: 1\n  zone: {}\n"
    assert said(validate_text("a: 1\nkind: X\napiVersion: v1\n---\n" + text, "f")) == [
        '10 error $.spec.selector.ap unknown field "ap"; did you mean "app"?',
        "12 error $.spec.metadata.a must be a string, not 1: put it in quotes",
        '13 error $.spec.zone.fromEndpoint field "fromEndpoint" is missing',
    ]
    text = HEAD + "  selector: {app: x}\n  metadata:\n    a b: x\n    class: x\n"
    assert said(validate_text(text, "f")) == [
        "7 error $.spec.metadata['a b'] a metadata key becomes an XML element name: a letter or _, "
        "then letters, digits, '.', '-' and '_', at most 128 characters",
        "8 error $.spec.metadata.class a metadata key must not be @class, class or instanceId, "
        "which mean something "
        "else in Eureka",
    ]


def test_other_kinds_are_passed_over_and_counted() -> None:
    """They are counted and not judged. Empty documents are not counted."""
    other = "apiVersion: apps/v1\nkind: Deployment\nspec: {selector: 7}\n"
    checked = validate_text(
        f"{other}---\n---\n{HEAD}  selector: {{app: rating}}\n---\n{other}", "f"
    )
    assert (checked.findings, checked.documents, checked.syncers, checked.others) == ((), 3, 1, 2)


def test_lists_are_opened() -> None:
    """Items are checked at any depth, with their whole path."""
    syncer = manifest_of({"selector": {}})
    text = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [{"kind": "List", "items": [syncer]}, 7]}
    )
    assert said(validate_text(text, "f")) == [
        "1 error $.items[0].items[0].spec.selector at least one of app, matchLabels, "
        "matchExpressions and service is "
        "needed",
        "1 error $.items[1] no Kubernetes object: apiVersion and kind are needed",
    ]


@pytest.mark.parametrize("text", ["word", "[]", "a: 1", "kind: Pod", "apiVersion: v1\nkind: 7"])
def test_a_document_that_is_no_object_is_refused(text: str) -> None:
    """kubectl also refuses a document without apiVersion and kind."""
    assert said(validate_text(text, "f")) == [
        "1 error $ no Kubernetes object: apiVersion and kind are needed"
    ]


TEMPLATE = (
    "error $ this is a Helm template: render it first, `helm template ... | eurekube-sync "
    "validate -`"
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{- if .Values.eureka.enabled }}\n" + HEAD + "  selector: {app: x}\n{{- end }}\n", 1),
        (HEAD + "  selector:\n    app: {{ .Values.app }}\n", 6),
        (HEAD.replace("rating", '"{{ .Release.Name }}"') + "  selector: {app: x}\n", 3),
        (HEAD + "  {{- toYaml .Values.spec | nindent 2 }}\n", 5),
        ("apiVersion: v1\nkind: Pod\n---\n" + HEAD + "  selector: {app: {{ .x }}}\n", 8),
    ],
)
def test_a_helm_template_is_named_as_one(text: str, line: int) -> None:
    """It is no manifest yet. The only finding says how to render it."""
    assert said(validate_text(text, "f")) == [f"{line} {TEMPLATE}"]


def test_braces_in_what_is_rendered_are_no_template() -> None:
    """Rendered alert rules keep their own braces, and do not hide other errors."""
    rule = (
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nspec: {summary: '{{ "
        "$labels.pod }}'}\n---\n"
    )
    assert said(validate_text(rule + HEAD + "  selector: {ap: x}\n", "f"))[-1].startswith(
        "9 error $.spec.selector.ap"
    )
    assert (
        validate_text(HEAD + "  selector: {app: x}\n  metadata: {note: '{{ x }}'}\n", "f").findings
        == ()
    )


def test_a_slip_in_kind_or_group_is_not_passed_over() -> None:
    """If the group or the kind is ours, the other one is a mistake."""
    text = "apiVersion: {}\nkind: {}\nmetadata: {{name: x}}\nspec: {{selector: {{app: x}}}}"
    assert said(validate_text(text.format("eurekube.io/v1", "EurekaSynccer"), "f")) == [
        '2 error $.kind "EurekaSynccer" is not a kind of this group; did you mean "EurekaSyncer"?'
    ]
    assert said(validate_text(text.format("eurekube.com/v1", "EurekaSyncer"), "f")) == [
        '1 error $.apiVersion must be "eurekube.io/v1", not "eurekube.com/v1"'
    ]
    assert said(validate_text("kind: EurekaSyncer\nspec: {selector: {app: x}}", "f"))[:1] == [
        '1 error $.apiVersion must be "eurekube.io/v1", not null'
    ]


def test_yaml_booleans_are_explained() -> None:
    """kubectl's YAML turns some words into booleans. Where a string is required, the finding says
    so."""
    (finding,) = validate_text(HEAD + "  selector: {app: on}\n", "f").findings
    assert (
        finding.reason
        == "must be a string, not true (YAML reads on, off, yes, no, y and n as true or false): "
        "put it in quotes"
    )


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"selector": {"app": "my_app"}}, ["$.spec.selector.app"]),
        ({"selector": {"app": "my_app"}, "vipAddress": "my-app"}, []),
        ({"selector": {"app": "x"}, "appName": "my_app"}, ["$.spec.appName"]),
        ({"selector": {"app": "x"}, "vipAddress": "a.b:80,a_b"}, ["$.spec.vipAddress"]),
        (
            {"selector": {"app": "x"}, "mode": "service", "service": {"address": "ClusterIP"}},
            ["$.spec.service.address"],
        ),
        (
            {"selector": {"app": "x"}, "paths": {"managementPort": 8081, "status": "/info"}},
            ["$.spec.paths.managementPort"],
        ),
        ({"selector": {"app": "x"}, "paths": {"managementPort": 8081, "health": "/health"}}, []),
        ({"selector": {"app": "x"}, "paths": {"status": "/info"}}, []),
        (
            {
                "selector": {"app": "x"},
                "metadata": {"management.context-path": "/admin", "version": "2"},
            },
            ["$.spec.metadata['management.context-path']"],
        ),
        (
            {"selector": {"app": "x"}, "metadata": {"health.path": "/health", "healthy": "yes"}},
            ["$.spec.metadata['health.path']"],
        ),
        (
            {
                "selector": {"app": "x"},
                "metadata": {"management.address": "10.0.0.1"},
                "paths": {"health": "/health"},
            },
            [],
        ),
    ],
    ids=str,
)
def test_a_valid_syncer_may_have_warnings(spec: Any, paths: list[str]) -> None:
    """A VIP that is no host name and a ClusterIP are warnings on a valid syncer. So is what only
    Spring Boot Admin reads, without the health URL that it needs."""
    findings = validate_object(manifest_of(spec))
    assert [finding.path for finding in findings] == paths
    assert {finding.severity for finding in findings} <= {Severity.WARNING}


def test_a_number_in_quotes_is_told_with_the_words_of_a_run() -> None:
    """A chart writes `port: "8080"`. Both ports are checked."""
    spec: dict[str, Any] = {"selector": {"app": "rating"}, "port": "8080", "securePort": "8443"}
    told = [finding.reason for finding in validate_object(manifest_of(spec))]
    refused = desired([syncer(**spec)], [service()]).claims[REF]
    assert isinstance(refused, NotServed)
    assert told == ['"8080" is in quotes, and a number goes without quotes: port: 8080', told[1]]
    assert refused.message == f"spec.port: {told[0]}; spec.securePort: {told[1]}"


def test_objects_from_the_cluster() -> None:
    """An object from the API server is valid with all its additions, and validation does not change
    it."""
    obj = manifest_of({"mode": "pod", "selector": {"app": "x"}, "limit": None})
    obj["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    obj["metadata"] |= {
        "namespace": "rating",
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    }
    obj["status"] = {"ready": "1/1", "conditions": [{"type": "Ready", "status": "True"}]}
    before = json.dumps(obj)
    assert validate_object(obj) == ()
    assert json.dumps(obj) == before


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"metadata": {f"k{n}": "" for n in range(65)}}, "has 65 entries, at most 64 are allowed"),
        (
            {"metadataFrom": [{"key": f"k{n}", "podLabel": "x"} for n in range(33)]},
            "has 33 entries, at most 32",
        ),
        ({"metadata": {"k": "x" * 1025}}, "is longer than 1024"),
        ({"metadata": {"k" * 129: ""}}, "at most 128 characters"),
        ({"vipAddress": ",".join(["rating"] * 100)}, "at most 512 long"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_beyond_its_bound_is_refused(spec: dict[str, Any], reason: str) -> None:
    """A value beyond the schema's bound is refused, and the finding has the bound."""
    (finding,) = validate_object(manifest_of({"selector": {"app": "x"}, **spec}))
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("last", "refused"), [("x" * 91, False), ("x" * 92, True), ("\u00e9" * 46, True)]
)
def test_too_much_metadata_is_refused_as_the_program_does(last: str, refused: bool) -> None:
    """The limit is 4096 bytes of keys and values. A rule of the API server would cost too much."""
    spec = {"selector": {"app": "x"}, "metadata": {**dict.fromkeys("abcd", "x" * 1000), "e": last}}
    found = [(one.path, one.reason) for one in validate_object(manifest_of(spec))]
    why = "metadata has at most 4096 bytes in all, keys and values together"
    assert found == ([("$.spec.metadata", why)] if refused else [])
    assert refusal(manifest_of(spec)) == (), "the embedded server takes it, as the real one does"


@given(spec=specs())
def test_json_text_and_object_agree(spec: Any) -> None:
    """An object and its JSON text give the same paths and reasons. Each line is one of the text."""
    manifest = manifest_of(spec)
    text = json.dumps(manifest, indent=1)
    from_text = validate_text(text, "f").findings
    read = json.loads(
        text, parse_float=yaml.safe_load
    )  # without a point, `1e+16` is a string in YAML
    assert {(f.path, f.reason) for f in from_text} == {
        (f.path, f.reason) for f in validate_object(read)
    }
    assert all(f.line and 1 <= f.line <= text.count("\n") + 1 for f in from_text)


@pytest.mark.fuzz
@given(text=st.text(st.sampled_from('ab:-{}[]"\n \t#&*!|>%?@,~<1.\x00\ud800é'), max_size=40))
def test_no_text_raises(text: str) -> None:
    """Any text gives findings with lines, never an exception."""
    for start in ("", HEAD, '{"kind": "EurekaSyncer", "spec": '):
        for finding in validate_text(start + text, "f").findings:
            assert finding.line is not None
            assert finding.line >= 1
