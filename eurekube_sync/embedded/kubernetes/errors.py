"""The refusals of the embedded Kubernetes API: one exception, and the `Status` bodies of the real server.

Owns the words of a real kube-apiserver 1.36 for each refusal. Knows no resource and no store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class ApiError(Exception):
    """A call that is refused, with the `Status` that a real server answers."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        given = {"reason": reason, "details": details}
        known = {name: value for name, value in given.items() if value is not None}
        self.body: Mapping[str, Any] = {**head, "message": message, **known, "code": code}


class PageNotFound(Exception):
    """A path nobody serves: the real server's mux answers this one as plain text."""


def qualified(plural: str, group: str) -> str:
    """`eurekasyncers.eurekube.io`, or `services` for the core group."""
    return f"{plural}.{group}" if group else plural


def details(plural: str, group: str, name: str = "", causes: Iterable[Mapping[str, str]] = ()) -> dict[str, Any]:
    """The `details` of a Status, empty fields left out as Go's omitempty does."""
    found = {"name": name, "group": group, "kind": plural, "causes": list(causes)}
    return {field: value for field, value in found.items() if value}


def not_found(plural: str, group: str, name: str) -> ApiError:
    """404 for an object."""
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=details(plural, group, name))


def already_exists(plural: str, group: str, name: str) -> ApiError:
    """409 for a create."""
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=details(plural, group, name))


def conflict(plural: str, group: str, name: str, why: str = "") -> ApiError:
    """409 for an update of an older version, or a failed precondition."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=details(plural, group, name))


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def unreadable(kind: str, version: str, why: str) -> ApiError:
    """400 for a body that is JSON, but not of this kind."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def unprocessable_patch() -> ApiError:
    """422 for a JSON Patch that cannot be applied, a failed `test` included; the message names no cause."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, details={})


def invalid(kind: str, group: str, name: str, causes: Iterable[tuple[str, str, str]]) -> ApiError:
    """422 for an object that fails validation; a cause is (field, reason, text), e.g. `FieldValueRequired`."""
    listed = list(causes)
    texts = list(dict.fromkeys(f"{field}: {text}" if field else text for field, _, text in listed))
    message = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    found = details(
        kind, group, name, ({"reason": reason, "message": text, "field": field} for field, reason, text in listed)
    )
    return ApiError(422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {message}', details=found)


def forbidden(plural: str, group: str, name: str, why: str, causes: Iterable[Mapping[str, str]] = ()) -> ApiError:
    """403, by RBAC or by an admission plugin."""
    named = f' "{name}"' if name else ""
    message = f"{qualified(plural, group)}{named} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, details=details(plural, group, name, causes))


def namespace_terminating(plural: str, group: str, name: str, namespace: str) -> ApiError:
    """403 of the NamespaceLifecycle admission plugin; not a matter of permissions."""
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(plural, group, name, why, (cause,))


def method_not_allowed() -> ApiError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def expired() -> ApiError:
    """410 for a `continue` whose snapshot is gone."""
    return ApiError(410, "Expired", "The provided continue parameter is too old to display a consistent list result.")


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    """415 for a body or a patch of an unknown type."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message)
