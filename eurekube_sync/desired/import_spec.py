"""Reads the spec of an EurekaImport: `parse` makes an `Import` of it, or raises an `InvalidSyncer`.

The API server has checked the spec against a CRD that may be older, so all is checked again, as
`spec` does for syncers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from eurekube_sync.desired.spec import check_port, in_shape, is_metadata_key, name_in, normal
from eurekube_sync.model.errors import Faults
from eurekube_sync.model.faults import Fault
from eurekube_sync.model.imports import ImportObject, ImportRef
from eurekube_sync.model.reasons import Reason

PORT = 80  # of the Service, unless the spec says another
_APP = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_VIP = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:[0-9]{1,5})?")
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")  # RFC 1035, as Services before 1.36 need it
_NAME_RULE = (
    "an import's name is a label of DNS: a lower-case letter, then lower-case letters, digits and "
    "hyphens, at most 63 characters"
)


class Target(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`spec.service`: the Service that callers use."""

    name: str = ""  # empty in a manifest: the import's name
    port: int | str | None = None  # None with `adopt`: by the rule for syncers
    secure_port: int | str | None = None
    headless: bool = False
    adopt: bool = False  # it exists, and is never changed


class Select(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`spec.select`: which instances."""

    zones: tuple[str, ...] | None = None  # None: any
    metadata: dict[str, str] = {}
    this_cluster: bool = False  # also those with the mark of this cluster


class ImportSpec(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The `spec` of a manifest."""

    app: str | None = None
    vip_address: str | None = None
    service: Target = Target()
    select: Select = Select()
    address_family: Literal["IPv4", "IPv6"] | None = None  # None: the Service's first
    suspend: bool = False
    syncer_class: str | None = None  # None: an installation without a class serves it


_SPEC = msgspec.json.Decoder(ImportSpec)  # for its type, which is built now


class Import(ImportSpec, frozen=True, kw_only=True):
    """A valid spec with its defaults. `app` is in upper case, and None with a VIP address; the
    Service has its name, and a port unless it is adopted."""

    ref: ImportRef


def parse(import_: ImportObject) -> Import:
    """Read and check the import's spec. Raises InvalidSyncer."""
    raw = normal(import_.spec)
    wrong = Faults()
    if import_.name and not _LABEL.fullmatch(import_.name):
        wrong[("metadata", "name"), _NAME_RULE] = Reason.INVALID_NAME
    spec = in_shape(raw, _SPEC, wrong)
    _check_names(spec, wrong)
    _check_ports(spec.service, wrong)
    _check_select(spec.select, wrong)
    if wrong:
        raise wrong.refusal()
    fields = msgspec.structs.asdict(spec)
    fields["service"] = _with_defaults(spec.service, import_.name)
    if spec.vip_address is None:
        app = spec.app or import_.name
        fields["app"] = app.upper()
    return Import(**fields, ref=import_.ref)


def class_of(import_: ImportObject) -> str | None:
    """Return the class in a raw spec, which may be invalid otherwise."""
    return name_in(import_.spec, "syncerClass")


def service_name(import_: ImportObject) -> str:
    """Return the name of the Service in a raw spec, which may be invalid otherwise."""
    return _service_name(import_.name, import_.spec)


def changed(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield why an import must not become `new`: both are whole objects. What is immutable is
    written once, because a Service cannot follow."""
    new_spec = new["spec"]
    old_spec = old["spec"]
    if _headless(new_spec) != _headless(old_spec):
        yield ("spec",), "service.headless is immutable, as in a Service"
    name = _service_name(new["metadata"]["name"], new_spec)
    before = _service_name(old["metadata"]["name"], old_spec)
    if name != before:
        yield (), "service.name is immutable, because the Service of before would stay"


def _service_name(import_name: str, spec: Mapping[str, Any]) -> str:
    return name_in(spec.get("service"), "name") or import_name


def _headless(spec: Mapping[str, Any]) -> bool:
    service = spec.get("service")
    return isinstance(service, Mapping) and service.get("headless") is True


def _with_defaults(service: Target, import_name: str) -> Target:
    name = service.name or import_name
    port = service.port
    # Without a port, that of an adopted Service is chosen as for syncers.
    if port is None and not service.adopt:
        port = PORT
    return msgspec.structs.replace(service, name=name, port=port)


def _check_names(spec: ImportSpec, wrong: Faults) -> None:
    app = spec.app
    if app is not None and not _APP.fullmatch(app):
        fault = "must be 1 to 128 letters, digits, '.', '_' or '-', a letter or digit at both ends"
        wrong.add(("app",), fault, Reason.INVALID_NAME)
    vip = spec.vip_address
    if vip is not None:
        if len(vip) > 128 or not _VIP.fullmatch(vip):
            fault = "must be one name of letters, digits and ._-, at most 128 long"
            wrong.add(("vipAddress",), fault, Reason.INVALID_NAME)
        if app is not None:
            wrong.add(("vipAddress",), "app and vipAddress exclude each other")
    name = spec.service.name
    if name and not _LABEL.fullmatch(name):
        fault = (
            "must be a lower-case letter, then lower-case letters, digits and hyphens, at most 63 "
            "characters"
        )
        wrong.add(("service", "name"), fault, Reason.INVALID_NAME)


def _check_ports(service: Target, wrong: Faults) -> None:
    if service.headless and service.adopt:
        fault = "headless and adopt exclude each other, because an adopted Service is never changed"
        wrong.add(("service", "headless"), fault)
    for field, port in (("port", service.port), ("securePort", service.secure_port)):
        path = ("service", field)
        is_wrong = check_port(path, port, wrong)
        if isinstance(port, str) and not service.adopt and not is_wrong:
            wrong.add(path, "a port by name is only for adopt")
    port = _with_defaults(service, "").port
    if port is not None and port == service.secure_port:
        fault = f"securePort must differ from port (both are {port})"
        wrong.add(("service", "securePort"), fault)


def _check_select(select: Select, wrong: Faults) -> None:
    if select.zones == ():
        wrong.add(("select", "zones"), "must not be empty")
    for key in select.metadata:
        if not is_metadata_key(key):
            fault = (
                "a metadata key is a letter, then letters, digits, dots and hyphens, at most 128 "
                "characters"
            )
            wrong.add(("select", "metadata"), fault, Reason.INVALID_METADATA)
