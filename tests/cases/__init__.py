"""Tables of cases that several suites run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eurekube_sync.manifests.crd import FILE_NAMES, KIND
from eurekube_sync.manifests.documents import Document, Finding, read_documents
from eurekube_sync.manifests.validation import findings_of
from eurekube_sync.model.imports import IMPORT

_FOLDER = Path(__file__).parent
RELEASED = Path(__file__).parent / "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A manifest and what is said of it."""

    name: str
    manifest: dict[str, Any]
    accepted: bool
    path: str = ""
    """For a refused one, how the JSON path begins."""
    reason: str = ""
    """For a refused one, a part of the reason."""


def manifest_of(spec: Any, kind: str = KIND) -> dict[str, Any]:
    """A EurekaSyncer, or an object of another kind, with that spec."""
    return {
        "apiVersion": "eurekube.io/v1",
        "kind": kind,
        "metadata": {"name": "case"},
        "spec": spec,
    }


def syncer_cases() -> list[Case]:
    """The table of EurekaSyncers."""
    return _cases(KIND)


def import_cases() -> list[Case]:
    """The table of EurekaImports."""
    return _cases(IMPORT)


def all_cases() -> list[Case]:
    """Both tables."""
    return [*syncer_cases(), *import_cases()]


def _cases(kind: str) -> list[Case]:
    table = _FOLDER / FILE_NAMES[kind]
    (document,) = read_documents(table.read_text(encoding="utf-8"), file=table.name)
    assert not document.findings, document.findings
    return [
        Case(
            name=row["name"],
            manifest=row["manifest"] if "manifest" in row else manifest_of(row["spec"], kind),
            accepted={"ok": True, "refused": False}[row["verdict"]],
            path=row.get("path", ""),
            reason=row.get("reason", ""),
        )
        for row in document.value
    ]


def released_cases() -> list[Case]:
    """What the CRD of each release accepts, by the name of the release and the case: see
    CONTRIBUTING."""
    cases = []
    for file in sorted(RELEASED.glob("*.yaml")):
        (document,) = read_documents(file.read_text(encoding="utf-8"), file=file.name)
        for name, manifest in document.value.items():
            cases.append(Case(name=f"{file.stem}: {name}", manifest=manifest, accepted=True))
    return cases


def validate_object(obj: dict[str, Any]) -> tuple[Finding, ...]:
    """What `validate` says of an object that is in no file."""
    return tuple(findings_of(Document(file="", number=1, value=obj), (), obj))
