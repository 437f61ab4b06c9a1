"""Offline, what the API server would say: of one object, and of a text with many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.manifests.documents import Document, read_documents
from eurekube_sync.manifests.findings import Finding, Path, Report, Severity, json_path
from eurekube_sync.manifests.syncer import advice, faults, our_kind

_TEMPLATE = "this is a Helm template: render it first, `helm template ... | eurekube-sync validate -`"


def validate_object(obj: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Check one object as it came from the cluster or a program: no file, no lines."""
    return tuple(_of_syncer(Document(file="", number=1, value=obj), (), obj))


def validate_text(text: str, file: str) -> Report:
    """Check all EurekaSyncers of a YAML stream or of JSON, and count what else is in it."""
    findings: list[Finding] = []
    documents = syncers = others = 0
    for document in read_documents(text, file=file):
        documents += document.value is not None or bool(document.findings)
        found = [*document.findings]
        for path, obj in _objects(document.value, ()) if document.value is not None else ():
            kind = _kind(obj)
            if kind is None:
                found.append(_finding(document, path, "no Kubernetes object: apiVersion and kind are needed"))
            elif not _is_ours(obj):
                others += 1
            else:
                syncers += 1
                found.extend(_of_syncer(document, path, obj))
        if document.template is not None and any(finding.severity is Severity.ERROR for finding in found):
            found = [replace(_finding(document, (), _TEMPLATE), line=document.template)]
        findings.extend(found)
    unique = tuple(dict.fromkeys(findings))
    return Report(findings=unique, files=1, documents=documents, syncers=syncers, others=others)


def _objects(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The value itself, or what a List holds, in whatever depth."""
    if isinstance(value, Mapping) and value.get("kind") in ("List", f"{our_kind()}List"):
        items = value.get("items")
        for index, item in enumerate(items if isinstance(items, list) else ()):
            yield from _objects(item, (*path, "items", index))
    else:
        yield path, value


def _kind(obj: Any) -> str | None:
    """The kind of a Kubernetes object; None of anything else."""
    if not isinstance(obj, Mapping):
        return None
    kind, version = obj.get("kind"), obj.get("apiVersion")
    return kind if isinstance(kind, str) and kind and (isinstance(version, str) or kind == our_kind()) else None


def _is_ours(obj: Mapping[str, Any]) -> bool:
    """Of our kind, or of our group: one of the two may be a slip."""
    group = str(obj.get("apiVersion")).partition("/")[0]
    return bool(obj["kind"] == our_kind() or group == load_crd()["spec"]["group"])


def _of_syncer(document: Document, path: Path, obj: Mapping[str, Any]) -> list[Finding]:
    """All that is wrong with one EurekaSyncer, and advice if nothing is."""
    found = [_finding(document, path + below, reason) for below, reason in faults(obj)]
    if not found:
        found = [_finding(document, path + below, reason, Severity.WARNING) for below, reason in advice(obj)]
    return sorted(found, key=lambda finding: (finding.line or 0, finding.path, finding.reason))


def _finding(document: Document, path: Path, reason: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(
        file=document.file,
        document=document.number,
        line=document.line(path),
        path=json_path(path),
        reason=reason,
        severity=severity,
    )
