"""What is wrong with EurekaSyncers, offline: by the CRD's schema, and by the program's own parse of the spec.

The parse refuses what the CRD's CEL rules refuse, in the same words; `tests/contract/test_crd.py` asks the real API
server whether it agrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from eurekube_sync.desired.spec import TOO_MUCH_METADATA, host_name_warning, parse
from eurekube_sync.manifests.crd import API_VERSION, GROUP, KIND, object_schema
from eurekube_sync.manifests.documents import Document, Finding, Report, Severity, read_documents
from eurekube_sync.manifests.schema import METADATA, conformed, metadata_faults, schema_faults, to_json_schema
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.wording import Fault, Path, did_you_mean, shown, written

Cause: TypeAlias = tuple[str, str, str]  # field, reason and text, as a Status of the API server has them

_TEMPLATE = "this is a Helm template: render it first, `helm template ... | eurekube-sync validate -`"


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
                found.append(document.finding(path, "no Kubernetes object: apiVersion and kind are needed"))
            elif kind != KIND and str(obj["apiVersion"]).partition("/")[0] != GROUP:
                others += 1
            else:  # of our kind or of our group: one of the two may be a slip
                syncers += 1
                found.extend(findings_of(document, path, obj))
        if document.template is not None and any(finding.severity is Severity.ERROR for finding in found):
            found = [document.finding((), _TEMPLATE, line=document.template)]
        findings.extend(found)
    unique = tuple(dict.fromkeys(findings))
    return Report(findings=unique, files=1, documents=documents, syncers=syncers, others=others)


def _objects(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The value itself, or what a List holds, in whatever depth."""
    if isinstance(value, Mapping) and value.get("kind") in ("List", f"{KIND}List"):
        items = value.get("items")
        for index, item in enumerate(items if isinstance(items, list) else ()):
            yield from _objects(item, (*path, "items", index))
    else:
        yield path, value


def _kind(obj: Any) -> str | None:
    """The kind of a Kubernetes object; None of anything else."""
    kind, version = (obj.get("kind"), obj.get("apiVersion")) if isinstance(obj, Mapping) else (None, None)
    return kind if isinstance(kind, str) and kind and (isinstance(version, str) or kind == KIND) else None


def findings_of(document: Document, path: Path, obj: Mapping[str, Any]) -> list[Finding]:
    """All that is wrong with one EurekaSyncer, and advice if nothing is."""
    found = [document.finding(path + below, reason) for below, reason in faults(obj)]
    if not found:
        found = [document.finding(path + below, reason, Severity.WARNING) for below, reason in _advice(obj)]
    return sorted(found, key=lambda finding: (finding.line or 0, finding.path, finding.reason))


def faults(obj: Mapping[str, Any]) -> list[Fault]:
    """All that the API server would refuse in a manifest. It drops the status that a manifest brings, but refuses
    unknown fields there."""
    kind, version = obj.get("kind"), obj.get("apiVersion")
    found: list[Fault] = []
    if kind != KIND:
        slip = f"{shown(kind)} is not a kind of this group{did_you_mean(str(kind), [KIND])}"
        found.append((("kind",), slip))
    if version != API_VERSION:
        found.append((("apiVersion",), f'must be "{API_VERSION}", not {shown(version)}'))
    return found + (_faults(obj, dropped="status") if kind == KIND else [])


def refusal(new: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> tuple[Cause, ...]:
    """Why a server refuses an object, in the words of the API server; empty if it takes it. An update
    may leave what was wrong in `old` as it was."""
    before = [] if old is None else _faults(old)
    return tuple(
        (written(path).removeprefix("."), "FieldValueInvalid", reason)
        for path, reason in _faults(new)
        if (path, reason) not in before and reason != TOO_MUCH_METADATA
    )


def stored(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """An object as a server stores it, and the names of the unknown fields that it leaves out, in its order."""
    kept, unknown = conformed(obj, schema)
    names = [written(path).removeprefix(".") for path, _ in unknown]
    return kept, sorted(names, key=lambda name: (name.startswith("metadata."), name))


def _faults(obj: Mapping[str, Any], *, dropped: str = "") -> list[Fault]:
    """Faults of spec, metadata and status. What the parse of the spec refuses is told in its words alone."""
    ready, unknown = conformed(obj, object_schema())
    ready.setdefault("metadata", {})
    by_schema = schema_faults(ready, _json_schema(), dropped=dropped)
    found = [*unknown, *_parse_faults(ready["spec"])] if "spec" in ready else unknown
    told = {("kind",), ("apiVersion",), *(path for path, _ in found)}
    for path, reason in by_schema.items():
        if not any(path[:length] in told for length in range(1, len(path) + 1)):
            found.append((path, reason))
    if not any(path[0] == "metadata" for path in by_schema):
        found += ((("metadata", *path), reason) for path, reason in metadata_faults(ready["metadata"]))
    return found


def _parse_faults(spec: Any) -> tuple[Fault, ...]:
    try:
        parse(SyncerObject(namespace="", name="", uid="", generation=0, resource_version="", created=0, spec=spec))
    except InvalidSyncer as error:
        return error.faults  # none for a wrong app name, which is what the schema says, too
    return ()


@cache
def _json_schema() -> dict[str, Any]:
    schema = to_json_schema(object_schema())
    schema["properties"] = {**schema["properties"], "metadata": to_json_schema(METADATA)}
    return schema


def _advice(obj: Mapping[str, Any]) -> Iterator[Fault]:
    """What is allowed in an object without faults, and still likely to disappoint."""
    spec = conformed(obj, object_schema())[0]["spec"]
    # Callers put VIPs into a URL as its host.
    own: list[tuple[Path, str | None]] = [((field,), spec.get(field)) for field in ("vipAddress", "appName")]
    own.append((("selector", "app"), spec["selector"].get("app")))
    given = [(path, text) for path, text in own if text][:1]
    for path, text in (*given, (("secureVipAddress",), spec.get("secureVipAddress", ""))):
        for name in filter(None, text.split(",")):
            if warning := host_name_warning(name.partition(":")[0]):
                yield ("spec", *path), warning
    if spec.get("service", {}).get("address") == "ClusterIP":
        yield ("spec", "service", "address"), "a ClusterIP is rarely reachable from outside the cluster"
