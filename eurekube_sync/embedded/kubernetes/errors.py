"""The errors of the embedded Kubernetes API, with the messages of a real kube-apiserver 1.36."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.resources import Resource

Fault = tuple[str, str, str]  # field, reason such as `FieldValueRequired`, and text


class ApiError(Exception):
    """A refused call, with the `Status` that a real server answers."""

    def __init__(
        self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
        if details is not None:
            self.body["details"] = details


class PageNotFound(Exception):
    """A path that is not served. The real server's mux answers in plain text."""


def details(
    kind: str, group: str, name: str = "", causes: Iterable[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """Make the `details` of a Status without empty fields, as Go's omitempty does."""
    fields = {"name": name, "group": group, "kind": kind, "causes": list(causes)}
    return {field: value for field, value in fields.items() if value}


def named(code: int, reason: str, resource: Resource, name: str, says: str) -> ApiError:
    """Make an error about one object; `says` ends the sentence that begins with its name."""
    about = details(resource.plural, resource.group, name)
    return ApiError(code, reason, f'{resource.qualified} "{name}" {says}', about)


def not_found() -> ApiError:
    """404 for an unknown resource of a group that is served."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def not_allowed() -> ApiError:
    """405 for a method that the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def conflict(
    resource: Resource,
    name: str,
    why: str = "the object has been modified; please apply your changes to the latest version and "
    "try again",
) -> ApiError:
    """409 for an update of an older version, or for a failed precondition."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, details(resource.plural, resource.group, name))


def unmet_precondition(resource: Resource, name: str, why: str) -> ApiError:
    """409 for a DELETE of another UID or version. The real one names the kind, not the plural."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return ApiError(409, "Conflict", message, details(resource.kind, resource.group, name))


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unreadable(resource: Resource, why: str) -> ApiError:
    """400 for JSON that is not an object of this kind."""
    kind = resource.kind
    return bad_request(
        f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
    )


def invalid(kind: str, group: str, name: str, faults: Iterable[Fault]) -> ApiError:
    """422 for an invalid object."""
    clauses: dict[str, None] = {}  # each once, in order
    causes: list[Mapping[str, str]] = []
    for field, reason, text in faults:
        causes.append({"reason": reason, "message": text, "field": field})
        clauses.setdefault(f"{field}: {text}" if field else text)
    texts = list(clauses)
    why = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {why}'
    return ApiError(422, "Invalid", message, details(kind, group, name, causes))


def forbidden(
    resource: Resource, name: str, why: str, causes: Iterable[Mapping[str, str]] = ()
) -> ApiError:
    """403 by RBAC, or because a namespace is being deleted."""
    named = f' "{name}"' if name else ""
    about = details(resource.plural, resource.group, name, causes)
    return ApiError(403, "Forbidden", f"{resource.qualified}{named} is forbidden: {why}", about)


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    """415 for a body or a patch of an unknown type."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return ApiError(415, "UnsupportedMediaType", message)
