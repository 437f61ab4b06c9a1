"""Offline, what the API server would say: of one object, and of a text with many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.manifests.documents import Document, read_documents
from eurekube_sync.manifests.findings import Finding, Path, Severity, json_path
from eurekube_sync.manifests.syncer import advice, faults, our_kind
from eurekube_sync.model.wording import counted

_TEMPLATE = "this is a Helm template: render it first, `helm template ... | eurekube-sync validate -`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found in one text, and how much there was."""

    findings: tuple[Finding, ...]
    documents: int
    """Documents that are not empty."""
    syncers: int
    others: int
    """Objects of other kinds, which were passed over."""


def validate_object(obj: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Check one object as it came from the cluster or a program: no file, no lines."""
    document = Document(file="", number=1, value=obj)
    return tuple(_sorted(_of_syncer(document, (), obj)))


def validate_text(text: str, file: str) -> tuple[Finding, ...]:
    """Check all EurekaSyncers of a YAML stream or of JSON; a warning if there is none."""
    checked = check_text(text, file)
    return (*checked.findings, *no_syncer(checked, file))


def no_syncer(checked: Checked, file: str) -> tuple[Finding, ...]:
    """The warning that a text holds no EurekaSyncer, unless it could not be read anyway."""
    if checked.syncers or any(finding.severity is Severity.ERROR for finding in checked.findings):
        return ()
    reason = f"no EurekaSyncer here, {only(checked.others)}"
    return (Finding(file=file, document=1, line=1, path="$", reason=reason, severity=Severity.WARNING),)


def only(others: int) -> str:
    """What there is where no EurekaSyncer is."""
    return f"only {counted(others, 'object')} of other kinds" if others else "nothing at all"


def check_text(text: str, file: str) -> Checked:
    """Check all EurekaSyncers of a text and count what else is in it."""
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
                found.extend(_sorted(_of_syncer(document, path, obj)))
        if document.template is not None and any(finding.severity is Severity.ERROR for finding in found):
            found = [replace(_finding(document, (), _TEMPLATE), line=document.template)]
        findings.extend(found)
    return Checked(findings=tuple(dict.fromkeys(findings)), documents=documents, syncers=syncers, others=others)


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


def _of_syncer(document: Document, path: Path, obj: Mapping[str, Any]) -> Iterator[Finding]:
    """All that is wrong with one EurekaSyncer, and advice if nothing is."""
    wrong = faults(obj)
    for below, reason in wrong:
        yield _finding(document, path + below, reason)
    for below, reason in () if wrong else advice(obj):
        yield _finding(document, path + below, reason, Severity.WARNING)


def _finding(document: Document, path: Path, reason: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(
        file=document.file,
        document=document.number,
        line=document.line(path),
        path=json_path(path),
        reason=reason,
        severity=severity,
    )


def _sorted(findings: Iterator[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.line or 0, finding.path, finding.reason))
