"""What is wrong with one EurekaSyncer: by the CRD's schema, and by the program's own parse of its spec.

The parse refuses what the CRD's CEL rules refuse, in the same words; `tests/contract/test_crd.py` asks the real API
server whether it agrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from eurekube_sync.desired.spec import TOO_MUCH_METADATA, host_name_warning, parse
from eurekube_sync.manifests import object_meta
from eurekube_sync.manifests.crd import api_version, load_crd, object_schema
from eurekube_sync.manifests.schema import prepared, schema_faults, to_json_schema
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.wording import Fault, Path, did_you_mean, shown, written

Cause: TypeAlias = tuple[str, str, str]
"""Field, reason and text, as a Status of the API server has them."""

_JUDGED_BY_THE_SERVER = (("metadata", "name"), ("metadata", "generateName"), ("metadata", "namespace"))


def our_kind() -> str:
    """`EurekaSyncer`."""
    return str(load_crd()["spec"]["names"]["kind"])


def faults(obj: Mapping[str, Any]) -> list[Fault]:
    """All that the API server would refuse in a manifest. It drops the status that a manifest brings, but refuses
    unknown fields there."""
    found = list(_type_faults(obj))
    return found + _faults(obj, dropped="status") if obj.get("kind") == our_kind() else found


def refusal(new: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> tuple[Cause, ...]:
    """Why a server refuses an object, in the words of the API server; empty if it takes it. An update
    may leave what was wrong in `old` as it was."""
    before = [] if old is None else _faults(old)
    found = [fault for fault in _faults(new) if fault not in before and fault[0] not in _JUDGED_BY_THE_SERVER]
    judged = [fault for fault in found if fault[1] != TOO_MUCH_METADATA]
    return tuple((written(path).removeprefix("."), "FieldValueInvalid", reason) for path, reason in judged)


def advice(obj: Mapping[str, Any]) -> Iterator[Fault]:
    """What is allowed in an object without faults, and still likely to disappoint."""
    spec = prepared(obj, object_schema())["spec"]
    for path, text in _vips(spec):
        for name in text.split(","):
            if warning := host_name_warning(name.partition(":")[0]):
                yield ("spec", *path), warning
    if spec.get("service", {}).get("address") == "ClusterIP":
        yield ("spec", "service", "address"), "a ClusterIP is rarely reachable from outside the cluster"


def _vips(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """The fields that give VIPs: callers put these into a URL as its host."""
    for field in ("vipAddress", "secureVipAddress"):
        if field in spec:
            yield (field,), spec[field]
    if "vipAddress" not in spec and "appName" in spec:
        yield ("appName",), spec["appName"]
    elif "vipAddress" not in spec and "app" in spec["selector"]:
        yield ("selector", "app"), spec["selector"]["app"]


def _type_faults(obj: Mapping[str, Any]) -> Iterator[Fault]:
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if kind != our_kind():
        yield ("kind",), f"{shown(kind)} is not a kind of this group{did_you_mean(str(kind), [our_kind()])}"
    if version != api_version():
        yield ("apiVersion",), f'must be "{api_version()}", not {shown(version)}'


def _faults(obj: Mapping[str, Any], *, dropped: str = "") -> list[Fault]:
    """Faults of spec, metadata and status. A part is parsed when its schema has nothing to say."""
    schema = object_schema()
    ready = prepared(obj, schema)
    metadata = ready["metadata"] = ready.get("metadata") or {}
    found = schema_faults(ready, _json_schema(), schema, dropped=dropped)
    found = [fault for fault in found if fault[0] not in (("kind",), ("apiVersion",))]
    faulty = {path[:1] for path, _ in found}
    if ("spec",) not in faulty:
        found += _parse_faults(ready["spec"])
    if ("metadata",) not in faulty:
        found += ((("metadata", *path), reason) for path, reason in object_meta.metadata_faults(metadata))
    return found


def _parse_faults(spec: Mapping[str, Any]) -> tuple[Fault, ...]:
    """What keeps the program from serving a spec."""
    try:
        parse(SyncerObject(namespace="", name="", uid="", generation=0, resource_version="", created=0, spec=spec))
    except InvalidSyncer as error:
        return error.faults or ((("spec",), str(error)),)
    return ()


@cache
def _json_schema() -> dict[str, Any]:
    schema = to_json_schema(object_schema())
    schema["properties"] = {**schema["properties"], "metadata": object_meta.SCHEMA}
    return schema
