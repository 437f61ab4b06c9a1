"""What a real kube-apiserver 1.36 refuses that neither the program nor kubectl sends, in its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource

_UNCHECKED = (
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


def check_kind(resource: Resource, body: Any) -> None:
    """Refuse an object of another kind or version."""
    if not isinstance(body, dict):
        return
    if resource.custom and not body.get("kind"):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
        )
    kind, version = body.get("kind") or resource.kind, body.get("apiVersion") or resource.api_version
    if version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
    if kind != resource.kind and resource.custom:
        fault = ("kind", "FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}')
        raise errors.invalid(kind, resource.group, (body.get("metadata") or {}).get("name", ""), [fault])
    if kind != resource.kind:
        raise errors.unreadable(resource, f"converting ({kind}): unknown conversion")


def check_named(resource: Resource, metadata: Mapping[str, Any]) -> None:
    """A new object has a name, or says how one begins."""
    if not metadata.get("name") and not metadata.get("generateName"):
        faults = [("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")]
        faults += [_UNCHECKED] if resource.custom else []
        raise errors.invalid(resource.kind, resource.group, "", faults)


def check_identity(resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse an update under another name, and a custom resource that does not say its version."""
    for what, called in (("name", "URL"), ("namespace", "request")):
        was = old.get(what, "")
        if new.get(what, was) != was:
            raise errors.bad_request(
                f"the {what} of the object ({new[what]}) does not match the {what} on the {called} ({was})"
            )
    if resource.custom and not new.get("resourceVersion"):
        fault = ("metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update")
        raise errors.invalid(resource.plural, resource.group, old["name"], [fault])


def check_finalizers(resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """A deleting object takes no new finalizer."""
    added = [f'"{name}"' for name in new.get("finalizers") or () if name not in (old.get("finalizers") or ())]
    if "deletionTimestamp" in old and added:
        text = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{', '.join(added)}}}"
        )
        times = 2 if resource.custom else 1  # the real server names it twice for a custom resource
        fault = ("metadata.finalizers", "FieldValueForbidden", text)
        raise errors.invalid(resource.kind, resource.group, old["name"], [fault] * times)
