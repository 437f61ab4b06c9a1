"""Reads the EurekaSyncers and EurekaImports of files as the API server would store them, for a plan
that is made before they are applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from msgspec import Struct

from eurekube_sync.manifests.crd import object_schema
from eurekube_sync.manifests.documents import Report
from eurekube_sync.manifests.files import validate_paths
from eurekube_sync.manifests.schema import conformed
from eurekube_sync.manifests.validation import objects_of_ours, validate_text
from eurekube_sync.model.struct import replace

_NO_NAME = "a plan needs a name: with generateName each apply makes another object"


class PlannedObject(Struct, frozen=True, kw_only=True):
    """An object of ours as it would be applied."""

    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]  # with the defaults of the CRD

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def read_planned(
    paths: Sequence[str], *, stdin: IO[bytes], namespace: str
) -> tuple[Report, tuple[PlannedObject, ...]]:
    """Read files, folders and `-`, and check them as `validate` does. An object without a namespace
    is of `namespace`. Of two objects with one name the last counts, as for kubectl."""
    planned: dict[tuple[str, str, str], PlannedObject] = {}

    def check(text: str, file: str) -> Report:
        report = validate_text(text, file)
        if not report.ok:
            return report
        for document, path, manifest in objects_of_ours(text, file):
            object_ = _planned(manifest, namespace)
            if not object_.name:
                finding = document.finding((*path, "metadata"), _NO_NAME)
                findings = (*report.findings, finding)
                report = replace(report, findings=findings)
            planned[object_.kind, object_.namespace, object_.name] = object_
        return report

    report = validate_paths(paths, stdin=stdin, allow_empty=True, check=check)
    return report, tuple(planned.values())


def _planned(manifest: Mapping[str, Any], namespace: str) -> PlannedObject:
    """Return an object of ours as it would be stored, with the defaults of the CRD."""
    schema = object_schema(manifest["kind"])
    stored, _ = conformed(manifest, schema)
    metadata = stored["metadata"]
    return PlannedObject(
        kind=stored["kind"],
        namespace=metadata.get("namespace") or namespace,
        name=metadata.get("name") or "",
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=stored["spec"],
    )
