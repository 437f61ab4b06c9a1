"""What a real kube-apiserver 1.36 refuses that neither the program nor kubectl sends, in its
words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import terms

_UNCHECKED = (
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing "
    "errors to complete validation",
)

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)

_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_LABEL_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_LABEL_VALUE}')"
)
_MOST_ENDPOINTS = 1000

_OF_ALL = ("metadata.name", "metadata.namespace")
_OF_EVENTS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "status.phase", "status.podIP"),
    "events": ("reason", "type", *(f"involvedObject.{field}" for field in _OF_EVENTS)),
}
"""Which other fields a resource can be selected by."""


class _Metadata(msgspec.Struct):
    """What of ObjectMeta has to be text; a null is as Go reads it."""

    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


def check_metadata(resource: Resource, body: Any) -> Any:
    """The body with text for each null in labels and annotations; refuse one whose metadata is of
    another shape."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not metadata:
        return body
    try:
        msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError as error:
        raise errors.unreadable(resource, f"json: cannot unmarshal metadata: {error}") from None
    for field in ("labels", "annotations"):
        if metadata.get(field):
            metadata = {
                **metadata,
                field: {key: value or "" for key, value in metadata[field].items()},
            }
    return {**body, "metadata": metadata}


def check_uid(
    resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any], *, patch: bool
) -> None:
    """Refuse another uid. That of a PATCH's outcome is no precondition."""
    uid = new.get("uid")
    if not uid or uid == old["uid"]:
        return
    if patch:
        fault = ("metadata.uid", "FieldValueInvalid", f'Invalid value: "{uid}": field is immutable')
        raise errors.invalid(resource.kind, resource.group, old["name"], [fault])
    why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
    raise errors.conflict(resource, old["name"], why)


def check_spec(kind: str, obj: Mapping[str, Any]) -> None:
    """Refuse a Pod without containers, and a Service whose ports lack something."""
    spec = obj.get("spec") or {}
    ports = spec.get("ports") or ()
    missing = []
    if kind == "Pod" and not spec.get("containers"):
        missing = ["spec.containers"]
    if kind == "Service" and spec.get("type") != "ExternalName":
        missing = [
            f"spec.ports[{at}].name"
            for at, port in enumerate(ports)
            if len(ports) > 1 and not port.get("name")
        ]
        if not ports and spec.get("clusterIP") != "None":
            missing = ["spec.ports"]
    if missing:
        faults = [(field, "FieldValueRequired", "Required value") for field in missing]
        raise errors.invalid(kind, "", obj["metadata"]["name"], faults)


def check_labels(resource: Resource, metadata: Mapping[str, Any]) -> None:
    """Refuse a label whose value is no name."""
    faults = [
        ("metadata.labels", "FieldValueInvalid", f'Invalid value: "{value}": {_LABEL_TEXT}')
        for value in (metadata.get("labels") or {}).values()
        if not re.fullmatch(_LABEL_VALUE, value) or len(value) > 63
    ]
    if faults:
        raise errors.invalid(resource.kind, resource.group, metadata["name"], faults)


def check_slice(endpoint_slice: Mapping[str, Any]) -> None:
    """Refuse a slice of too many endpoints, and names of ports that are twice or no labels of DNS.
    Numbers of ports are not checked [real 1.36]."""
    faults: list[errors.Fault] = []
    number = len(endpoint_slice.get("endpoints") or ())
    if number > _MOST_ENDPOINTS:
        text = f"Too many: {number}: must have at most {_MOST_ENDPOINTS} items"
        faults.append(("endpoints", "FieldValueTooMany", text))
    names: set[str] = set()
    for at, port in enumerate(endpoint_slice.get("ports") or ()):
        field, name = f"ports[{at}].name", port["name"]
        if name in names:
            faults.append((field, "FieldValueDuplicate", f'Duplicate value: "{name}"'))
        elif name and (why := _port_name_fault(name)):
            faults.append((field, "FieldValueInvalid", f'Invalid value: "{name}": {why}'))
        names.add(name)
    if faults:
        name = endpoint_slice["metadata"]["name"]
        raise errors.invalid("EndpointSlice", "discovery.k8s.io", name, faults)


def _port_name_fault(name: str) -> str:
    if len(name) > 63:
        return "must be no more than 63 characters"
    if "." in name:
        return "must not contain dots"
    return (
        "" if re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) else "a lowercase RFC 1123 label"
    )


def check_cluster_ip(service: Mapping[str, Any], old: Mapping[str, Any] | None) -> None:
    """Refuse another cluster IP, and to take one away or to give one later."""
    before = (old or {}).get("spec") or {}
    was, now = before.get("clusterIPs"), service["spec"].get("clusterIPs")
    both = "ExternalName" not in (before.get("type"), service["spec"].get("type"))
    if old and both and was and now and was[0] != now[0]:
        shown = msgspec.json.encode(now).decode()
        text = f"Invalid value: {shown}: may not change once set"
        fault = ("spec.clusterIPs[0]", "FieldValueInvalid", text)
        raise errors.invalid("Service", "", service["metadata"]["name"], [fault])


def check_kind(resource: Resource, body: Any) -> None:
    """Refuse an object of another kind or version."""
    if not isinstance(body, dict):
        return
    if resource.custom and not body.get("kind"):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): Object "
            "'Kind' is missing"
        )
    kind, version = (
        body.get("kind") or resource.kind,
        body.get("apiVersion") or resource.api_version,
    )
    if version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind != resource.kind and resource.custom:
        fault = ("kind", "FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}')
        raise errors.invalid(
            kind, resource.group, (body.get("metadata") or {}).get("name", ""), [fault]
        )
    if kind != resource.kind:
        raise errors.unreadable(resource, f"converting ({kind}): unknown conversion")


def check_named(resource: Resource, metadata: Mapping[str, Any]) -> None:
    """A new object has a name that is a DNS subdomain, or says how one begins."""
    if not metadata.get("name") and not metadata.get("generateName"):
        faults = [
            (
                "metadata.name",
                "FieldValueRequired",
                "Required value: name or generateName is required",
            )
        ]
        faults += [_UNCHECKED] if resource.custom else []
        raise errors.invalid(resource.kind, resource.group, "", faults)
    name = metadata.get("name") or metadata["generateName"].removesuffix("-")
    if not re.fullmatch(_SUBDOMAIN, name) or len(name) > 253:
        fault = (
            "metadata.name",
            "FieldValueInvalid",
            f'Invalid value: "{name}": {_SUBDOMAIN_TEXT}',
        )
        raise errors.invalid(resource.kind, resource.group, name, [fault])


def check_identity(resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse an update under another name, and a custom resource that does not say its version."""
    for what, called in (("name", "URL"), ("namespace", "request")):
        was = old.get(what, "")
        if new.get(what, was) != was:
            raise errors.bad_request(
                f"the {what} of the object ({new[what]}) does not match the {what} on the "
                f"{called} ({was})"
            )
    if resource.custom and not new.get("resourceVersion"):
        fault = (
            "metadata.resourceVersion",
            "FieldValueInvalid",
            "Invalid value: 0: must be specified for an update",
        )
        raise errors.invalid(resource.plural, resource.group, old["name"], [fault])


def check_finalizers(resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """A deleting object takes no new finalizer."""
    added = [
        f'"{name}"'
        for name in new.get("finalizers") or ()
        if name not in (old.get("finalizers") or ())
    ]
    if "deletionTimestamp" in old and added:
        text = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            "finalizers "
            f"[]string{{{', '.join(added)}}}"
        )
        times = 2 if resource.custom else 1  # the real server names it twice for a custom resource
        fault = ("metadata.finalizers", "FieldValueForbidden", text)
        raise errors.invalid(resource.kind, resource.group, old["name"], [fault] * times)


def check_fields(plural: str, selector: str) -> None:
    """Refuse a field selector of what the resource does not index."""
    for field, _, _ in terms(selector):
        if field not in (*_OF_ALL, *_FIELDS.get(plural, ())):
            raise errors.bad_request(f"field label not supported: {field}")
