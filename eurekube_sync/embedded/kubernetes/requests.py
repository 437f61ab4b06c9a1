"""What a request asks for: its body, a patch, the options of a write, and the form of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from eurekube_sync.embedded.http import Request
from eurekube_sync.embedded.kubernetes import errors, patches, protobuf
from eurekube_sync.embedded.kubernetes.checks import DeleteOptions, WriteOptions
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Stored

_PATCHES: Mapping[str, Callable[[Any, Any], Any]] = {
    patches.JSON: patches.json_patch,
    patches.MERGE: patches.merge_patch,
    patches.STRATEGIC: patches.strategic_merge_patch,
}


def body(request: Request) -> Any:
    """The object in a request: JSON, or kubectl's protobuf. Raises `ApiError`."""
    content = request.headers.get("content-type", "").partition(";")[0].strip()
    if content == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(request.body)
        except protobuf.ProtobufError:
            raise errors.unsupported_media_type(("application/json",)) from None
    if content not in ("", "application/json"):
        raise errors.unsupported_media_type(("application/json",))
    return _decoded(request.body)


def patched(request: Request, resource: Resource, stored: Stored) -> Any:
    """The object as the patch makes it. Raises `ApiError`."""
    content = request.headers.get("content-type", "").partition(";")[0].strip()
    accepted = [patches.JSON, patches.MERGE, *(() if resource.custom else (patches.STRATEGIC,))]
    if content not in accepted:
        raise errors.unsupported_media_type(accepted)
    patch = _decoded(request.body)
    expected = list if content == patches.JSON else dict
    if not isinstance(patch, expected):
        raise errors.bad_request(
            f"error decoding patch: json: cannot unmarshal into Go value of type {expected.__name__}"
        )
    try:
        return _PATCHES[content](stored.obj, patch)
    except patches.PatchError:
        raise errors.unprocessable_patch() from None


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def options(request: Request) -> WriteOptions:
    """The query of a write."""
    return WriteOptions(
        dry_run=request.query.get("dryRun") == "All",
        patch=request.method == "PATCH",
        strict=request.query.get("fieldValidation") == "Strict",
    )


def delete_options(request: Request) -> DeleteOptions:
    """Query and body of a DELETE."""
    body = _decoded(request.body) if request.body else {}
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    return DeleteOptions(
        dry_run="All" in (request.query.get("dryRun"), *(body.get("dryRun") or ())),
        grace_seconds=None if grace is None else int(grace),
    )


def wants(request: Request, kind: str) -> bool:
    """Whether the media type that is accepted first names this kind of `meta.k8s.io`."""
    first = request.headers.get("accept", "").partition(",")[0].replace(" ", "")
    return f"as={kind}" in first.split(";")
