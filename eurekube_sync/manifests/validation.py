"""Checks EurekaSyncers and EurekaImports offline, with the CRD's schema and the program's own
parser of the spec.

The parser refuses the same values as the CRD's CEL rules, with the same messages.
`tests/contract/test_crd.py` compares the results with those of the real API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from eurekube_sync.desired import import_spec, spec
from eurekube_sync.desired.spec import TOO_MUCH_METADATA, host_name_warning
from eurekube_sync.manifests.crd import API_VERSION, FILE_NAMES, GROUP, KIND, object_schema
from eurekube_sync.manifests.documents import Document, Finding, Report, Severity, read_documents
from eurekube_sync.manifests.schema import (
    METADATA,
    conformed,
    metadata_faults,
    schema_faults,
    to_json_schema,
)
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.faults import Fault, Path, did_you_mean, shown, written
from eurekube_sync.model.imports import IMPORT, ImportObject
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.struct import replace

Cause: TypeAlias = tuple[str, str, str]  # field, reason and text, as in a Status of the API server
KINDS = tuple(FILE_NAMES)
_LISTS = ("List", *(f"{kind}List" for kind in KINDS))

_TEMPLATE = (
    "this is a Helm template: render it first, `helm template ... | eurekube-sync validate -`"
)

_OF_BOOT_ADMIN = ("management.", "health.path")
"""Metadata keys, or how they begin, that only Spring Boot Admin reads
(DefaultServiceInstanceConverter)."""


def validate_text(text: str, file: str) -> Report:
    """Check all objects of our kinds in a stream of YAML or JSON, and count the others."""
    report = Report(files=1)
    for document in read_documents(text, file=file):
        report += _of_document(document)
    unique = dict.fromkeys(report.findings)
    return replace(report, findings=tuple(unique))


def _of_document(document: Document) -> Report:
    """Check and count the objects of one document."""
    if document.value is None:
        unread = document.findings  # none of an empty document
        return Report(findings=_rendered(document, unread), documents=len(unread))
    findings: list[Finding] = []
    syncers = imports = others = 0
    for path, obj in _objects(document.value, ()):
        kind = _kind(obj)
        if kind is None:
            reason = "no Kubernetes object: apiVersion and kind are needed"
            findings.append(document.finding(path, reason))
            continue
        group, _, _ = str(obj.get("apiVersion")).partition("/")
        if kind not in KINDS and group != GROUP:
            others += 1
            continue
        # Our kind or our group: one of them may be a typo.
        if kind == IMPORT:
            imports += 1
        else:
            syncers += 1
        findings += findings_of(document, path, obj)
    return Report(
        findings=_rendered(document, findings),
        documents=1,
        syncers=syncers,
        imports=imports,
        others=others,
    )


def _rendered(document: Document, findings: list[Finding]) -> tuple[Finding, ...]:
    """Return the findings, or that a template with errors is to be rendered first."""
    has_error = any(finding.severity is Severity.ERROR for finding in findings)
    if has_error and document.template is not None:
        return (document.finding((), _TEMPLATE, line=document.template),)
    return tuple(findings)


def objects_of_ours(text: str, file: str) -> Iterator[tuple[Document, Path, Mapping[str, Any]]]:
    """Yield each object of our kinds in a valid stream, with its place."""
    for document in read_documents(text, file=file):
        for path, obj in _objects(document.value, ()):
            if _kind(obj) in KINDS:
                yield document, path, obj


def _objects(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the value itself, or the items of a List, also of nested Lists."""
    if not isinstance(value, Mapping) or value.get("kind") not in _LISTS:
        yield path, value
        return
    items = value.get("items")
    if isinstance(items, list):
        for index, item in enumerate(items):
            yield from _objects(item, (*path, "items", index))


def _kind(obj: Any) -> str | None:
    """Return the kind of a Kubernetes object, or None for any other value."""
    if not isinstance(obj, Mapping):
        return None
    kind = obj.get("kind")
    if not isinstance(kind, str) or not kind:
        return None
    # Our own kind without an apiVersion is a mistake in it, not some other document.
    if kind in KINDS or isinstance(obj.get("apiVersion"), str):
        return kind
    return None


def findings_of(document: Document, path: Path, obj: Mapping[str, Any]) -> list[Finding]:
    """Return the errors of one object of ours, or its warnings if it has no errors."""
    findings = []
    for below, reason in faults(obj):
        findings.append(document.finding(path + below, reason))
    if not findings and obj["kind"] == KIND:
        for below, reason in _warnings(obj):
            findings.append(document.finding(path + below, reason, Severity.WARNING))
    return sorted(findings, key=_by_line)


def _by_line(finding: Finding) -> tuple[int, str, str]:
    return finding.line or 0, finding.path, finding.reason


def faults(obj: Mapping[str, Any]) -> list[Fault]:
    """Return all faults for which the API server would refuse a manifest. In `status` it refuses
    only unknown fields, because it drops the rest."""
    kind = obj.get("kind")
    version = obj.get("apiVersion")
    wrong: list[Fault] = []
    if kind not in KINDS:
        meant = did_you_mean(str(kind), KINDS)
        reason = f"{shown(kind)} is not a kind of this group{meant}"
        wrong.append((("kind",), reason))
    if version != API_VERSION:
        reason = f'must be "{API_VERSION}", not {shown(version)}'
        wrong.append((("apiVersion",), reason))
    if kind in KINDS:
        wrong += _faults(obj, dropped="status")
    return wrong


def refusal(new: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> tuple[Cause, ...]:
    """Return the causes with which the API server refuses an object; empty if it accepts the
    object. Faults that `old` has as well are accepted."""
    before: list[Fault] = []
    if old is not None:
        before = _faults(old)
    refused: list[Fault] = []
    for fault in _faults(new):
        _, reason = fault
        if fault not in before and reason != TOO_MUCH_METADATA:
            refused.append(fault)
    if old is not None and new["kind"] == IMPORT:
        refused += import_spec.changed(new, old)
    causes = []
    for path, reason in refused:
        causes.append((_field(path), "FieldValueInvalid", reason))
    return tuple(causes)


def _field(path: Path) -> str:
    """Return a path as the API server names a field, such as `spec.selector.app`."""
    return written(path).removeprefix(".")


def stored(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an object as the API server stores it, and the unknown fields that it drops, in the
    server's order."""
    kept, unknown = conformed(obj, schema)
    of_metadata = []
    others = []
    for path, _ in unknown:
        if path[0] == "metadata":
            of_metadata.append(_field(path))
        else:
            others.append(_field(path))
    return kept, sorted(others) + sorted(of_metadata)


def _faults(obj: Mapping[str, Any], *, dropped: str = "") -> list[Fault]:
    """Return the faults of spec, metadata and status. For a value that the parser refuses, its
    message replaces that of the schema."""
    kind = obj["kind"]
    ready, wrong = conformed(obj, object_schema(kind))
    ready.setdefault("metadata", {})
    if "spec" in ready:
        wrong += _parse_faults(kind, ready["metadata"], ready["spec"])
    reported: set[Path] = {("kind",), ("apiVersion",)}
    for path, _ in wrong:
        reported.add(path)

    by_schema = schema_faults(ready, _json_schema(kind), dropped=dropped)
    metadata_fits = True
    for path, reason in by_schema.items():
        if path[0] == "metadata":
            metadata_fits = False
        # What lies within a refused value is not to be told as well.
        within = [path[:length] for length in range(1, len(path) + 1)]
        if reported.isdisjoint(within):
            wrong.append((path, reason))

    if metadata_fits:
        for below, reason in metadata_faults(ready["metadata"]):
            path = ("metadata", *below)
            if path not in reported:
                wrong.append((path, reason))
    return wrong


def _parse_faults(kind: str, metadata: Any, raw: Any) -> tuple[Fault, ...]:
    fields: dict[str, Any] = {
        "namespace": "",
        "name": _name(metadata),
        "uid": "",
        "generation": 0,
        "resource_version": "",
        "created": 0,
        "spec": raw,
    }
    try:
        if kind == IMPORT:
            import_spec.parse(ImportObject(**fields))
        else:
            spec.parse(SyncerObject(**fields))
    except InvalidSyncer as error:
        return error.faults  # none for an invalid app name, which the schema reports
    return ()


def _name(metadata: Any) -> str:
    """Return the name, or one that the API server may make of `generateName`; empty if it is of
    another type, which the schema reports."""
    if not isinstance(metadata, Mapping):
        return ""
    name = metadata.get("name")
    if isinstance(name, str) and name:
        return name
    begin = metadata.get("generateName")
    if isinstance(begin, str) and begin:
        return f"{begin[:58]}x"
    return ""


@cache
def _json_schema(kind: str) -> dict[str, Any]:
    schema = to_json_schema(object_schema(kind))
    schema["properties"] = {**schema["properties"], "metadata": to_json_schema(METADATA)}
    return schema


def _warnings(obj: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield warnings about valid values of an object without faults that are probably mistakes."""
    kept, _ = conformed(obj, object_schema())
    given = kept["spec"]
    # Callers use a VIP as the host of a URL. The VIP is the first of these three that is given.
    vips = (
        (("vipAddress",), given.get("vipAddress")),
        (("appName",), given.get("appName")),
        (("selector", "app"), given["selector"].get("app")),
    )
    hosts = [(path, text) for path, text in vips if text][:1]
    hosts.append((("secureVipAddress",), given.get("secureVipAddress", "")))
    for path, text in hosts:
        for name in filter(None, text.split(",")):
            warning = host_name_warning(name)
            if warning:
                yield ("spec", *path), warning
    if given.get("service", {}).get("address") == "ClusterIP":
        reason = "a ClusterIP is rarely reachable from outside the cluster"
        yield ("spec", "service", "address"), reason
    yield from _without_health(given)


def _without_health(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a warning about each field that only Spring Boot Admin reads, if the syncer has no
    health URL: Spring Boot Admin then fails at each refresh (EurekaServiceInstanceConverter)."""
    paths = spec.get("paths", {})
    if "health" in paths:
        return
    reason = "Spring Boot Admin shows no instance without a health URL: set paths.health"
    if "managementPort" in paths:
        yield ("spec", "paths", "managementPort"), reason
    for key in spec.get("metadata", {}):
        if key.startswith(_OF_BOOT_ADMIN):
            yield ("spec", "metadata", key), reason
