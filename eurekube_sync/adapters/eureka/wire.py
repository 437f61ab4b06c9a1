"""Eureka's JSON (`EurekaJacksonCodec`), read tolerantly. Servers differ: `$` and `@enabled` are
text or native, the override has two spellings, and old codecs write a single element without its
array."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from eurekube_sync.adapters.no_answer import UNREADABLE, reason
from eurekube_sync.model.errors import RegistryRejected, RegistryUnusable
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.ownership import CLUSTER, OWNER, SYNCER
from eurekube_sync.model.sanitize import excerpt
from eurekube_sync.model.struct import replace

_DATA_CENTER = {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"}
_OUR_METADATA = "eurekube."
_OUR_ID = re.compile(r"[a-z0-9-]+(:[^:]+){3}:\d+")
_COUNTS = re.compile(r"[A-Z_]+?_(\d+)_")
_METADATA_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_NO_TEXT = "\ufffd".encode()  # in place of bytes that are no text
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NO_PORT = Port(0, False)
_TEXT = frozenset({str})
_ALIKE = (OWNER, CLUSTER, SYNCER)  # marks with the same value in many instances
_STATUSES = {status.value: status for status in InstanceStatus}


class _Port(msgspec.Struct, gc=False):
    number: int | str | None = msgspec.field(name="$", default=None)
    enabled: bool | str | None = msgspec.field(name="@enabled", default=None)


class _Lease(msgspec.Struct, rename="camel", gc=False):
    renewal_interval_in_secs: int | str | None = None
    duration_in_secs: int | str | None = None
    registration_timestamp: int | str | None = None
    last_renewal_timestamp: int | str | None = None


class _Document(msgspec.Struct, rename="camel", gc=False):  # other fields are skipped
    instance_id: str | None = None
    host_name: str | None = None
    app: str | None = None
    ip_addr: str | None = None
    status: str | None = None
    overridden_status: str | None = None
    overridden_legacy: str | None = msgspec.field(name="overriddenstatus", default=None)
    port: _Port | None = None
    secure_port: _Port | None = None
    lease_info: _Lease | None = None
    metadata: dict[str, str | int | float | bool | None] | None = None
    vip_address: str | None = None
    secure_vip_address: str | None = None
    last_dirty_timestamp: int | str | None = None
    home_page_url: str | None = None
    status_page_url: str | None = None
    health_check_url: str | None = None


_NO_LEASE = _Lease()


class _One(msgspec.Struct):
    instance: _Document


class _Application(msgspec.Struct):
    instance: list[_Document] | _Document  # required
    name: str | None = None


class _RawApplication(msgspec.Struct):
    instance: list[msgspec.Raw] | dict[str, msgspec.Raw]
    name: msgspec.Raw = msgspec.Raw(b"null")


class _Applications(msgspec.Struct):
    # Decoded one by one, to save a third of a pass's memory
    application: list[msgspec.Raw] | dict[str, msgspec.Raw]
    apps__hashcode: str | None = None  # the number of instances of each status


class _List(msgspec.Struct):
    applications: _Applications


_ONE = msgspec.json.Decoder(_One)
_LIST = msgspec.json.Decoder(_List)
_APPLICATION = msgspec.json.Decoder(_Application)
_RAW_APPLICATION = msgspec.json.Decoder(_RawApplication)
_DOCUMENT = msgspec.json.Decoder(_Document)
_NAME: msgspec.json.Decoder[str | None] = msgspec.json.Decoder(str | None)
_ANY = msgspec.json.Decoder(Any)
_RAW_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FIELDS = {  # of `_Document`: the name in JSON and the decoder, by our name
    field.name: (field.encode_name, msgspec.json.Decoder(field.type))
    for field in msgspec.structs.fields(_Document)
}
_Read: TypeAlias = Callable[[_Document, str | None], ObservedInstance]
_Known: TypeAlias = dict[tuple[str | None, str | None], tuple[_Document | None, ObservedInstance]]
"""By app and id: the document without its last renewal, and its instance. The document is None if
its metadata has numbers, because 1 equals true, and is read differently."""


class Decoded:
    """Remembers the instances of the last list. One that differs only in its last renewal is the
    same `Instance` again, so that later stages see that it did not change. Of a first list nothing
    is kept, to save memory."""

    def __init__(self) -> None:
        self._known: _Known | None = None  # None before the first list

    @contextmanager
    def reading(self, afresh: _Read) -> Iterator[_Read]:
        """Yield the function that reads an instance of a list, by `afresh` if it changed. Forget
        the last list then."""
        before = self._known
        if before is None:
            yield afresh
            self._known = {}
            return
        now: _Known = {}

        def read(document: _Document, app: str | None) -> ObservedInstance:
            lease = document.lease_info
            renewal = 0
            if lease is not None:
                renewal = int(lease.last_renewal_timestamp or 0)
                lease.last_renewal_timestamp = None
            key = (document.app or app, document.instance_id)
            known, observed = before.get(key, (None, None))
            if observed is None or known != document:
                known = document if _is_text_alone(document.metadata or {}) else None
                observed = afresh(document, app)
            if observed.last_renewal != renewal:
                observed = ObservedInstance(
                    instance=observed.instance,
                    last_dirty_timestamp=observed.last_dirty_timestamp,
                    last_renewal=renewal,
                    registered=observed.registered,
                )
            now[observed.key] = known, observed
            return observed

        yield read
        self._known = now


class DecodedList(NamedTuple):
    instances: tuple[ObservedInstance, ...]
    malformed: tuple[str, ...] = ()  # labels of others' instances that were read in part


def decode_list(body: bytes, decoded: Decoded | None = None) -> DecodedList:
    """Read `GET /apps`. Raise RegistryUnusable if it is no registry, or if an instance of ours may
    be missing, as with fewer instances than `apps__hashcode` counts
    (`Applications.getReconcileHashCode`)."""
    instances: list[ObservedInstance] = []
    malformed: list[str] = []
    with _reading("a registry"), (decoded or Decoded()).reading(_observed) as read:
        applications = _LIST.decode(body).applications
        said = sum(map(int, _COUNTS.findall(applications.apps__hashcode or "")))
        for raw in _raw_each(applications.application):
            try:
                application = _APPLICATION.decode(raw)
                listed = application.instance
                if not isinstance(listed, list):
                    listed = [listed]
                instances += [read(document, application.name) for document in listed]
            except UNREADABLE:  # one malformed instance must not hide the others of its app
                malformed += _read_one_by_one(raw, instances)
    if len(instances) < said:
        raise RegistryUnusable(
            "the list holds fewer instances than its own apps__hashcode counts: something between "
            "us and the server shortens it"
        )
    return DecodedList(instances=tuple(instances), malformed=tuple(malformed))


def decode_instance(body: bytes) -> ObservedInstance:
    """Read `GET /apps/{APP}/{id}`; raise RegistryUnusable if it is no instance."""
    with _reading("an instance"):
        return _observed(_ONE.decode(body).instance, None)


def decode_shown(raw: msgspec.Raw) -> ObservedInstance | None:
    """Read the instance of a reply to a heartbeat; None if there is none, or it is malformed."""
    try:
        return _observed(_DOCUMENT.decode(raw), None)
    except UNREADABLE:
        return None


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        # A ValueError itself is that of a number, and its subclasses are those of text.
        if isinstance(error, msgspec.ValidationError) or type(error) is ValueError:
            why = f"is JSON but not {what} ({reason(error)}): check that this is the URL of Eureka"
        else:
            why = (
                f"is not complete JSON ({reason(error)}): it was cut on its way, or another "
                "program answers in its place"
            )
        raise RegistryUnusable(f"the answer {why}") from error


def encode_instance(instance: Instance, *, dirty_timestamp: int) -> bytes:
    return msgspec.json.encode(
        {"instance": instance_document(instance, dirty_timestamp=dirty_timestamp)}
    )


def instance_document(instance: Instance, *, dirty_timestamp: int) -> dict[str, Any]:
    """Return the JSON object of a registration. Eureka makes an override of `overriddenstatus`,
    unless it is UNKNOWN. Raise RegistryRejected for metadata that makes the XML of `/apps`
    unreadable (`k:v` is an unbound prefix there)."""
    for key, value in instance.metadata.items():
        if not _METADATA_KEY.fullmatch(key) or _UNPRINTABLE.search(value):
            raise RegistryRejected(
                f"instance {instance.key} was not sent: metadata {key!r} would make the list "
                "unreadable in XML for every client; use letters, digits, `.`, `_` and `-` in keys "
                "and no control characters in values"
            )
    return _written(instance, dirty_timestamp=dirty_timestamp)


def observed_document(observed: ObservedInstance) -> dict[str, Any]:
    """Return the JSON object that Eureka lists for this instance. What was malformed is so
    again."""
    body = _written(observed.instance, dirty_timestamp=observed.last_dirty_timestamp)
    times = {
        "registrationTimestamp": observed.registered,
        "lastRenewalTimestamp": observed.last_renewal,
    }
    document = body | {"leaseInfo": body["leaseInfo"] | times}
    for name in observed.unread:
        written_name, _ = _FIELDS[name]
        # Metadata whose keys cannot be read could have our marks
        document[written_name] = {"malformed": []} if name == "metadata" else []
    return document


def _written(instance: Instance, *, dirty_timestamp: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "instanceId": instance.key.id,
        "hostName": instance.host_name,
        "ipAddr": instance.ip_addr,
        "app": instance.key.app,
        "vipAddress": instance.vip_address,
        "secureVipAddress": instance.secure_vip_address,
        "status": instance.status.value,
        "overriddenstatus": instance.override.value,
        "port": _written_port(instance.port),
        "securePort": _written_port(instance.secure_port),
        "dataCenterInfo": _DATA_CENTER,
        "leaseInfo": {
            "renewalIntervalInSecs": instance.lease.renewal,
            "durationInSecs": instance.lease.duration,
        },
        "metadata": dict(instance.metadata),
        "lastDirtyTimestamp": str(dirty_timestamp),
    }
    urls = {
        "homePageUrl": instance.home_page_url,
        "statusPageUrl": instance.status_page_url,
        "healthCheckUrl": instance.health_check_url,
    }
    return body | {name: url for name, url in urls.items() if url}


def _written_port(port: Port) -> dict[str, int | str]:
    return {"$": port.number, "@enabled": "true" if port.enabled else "false"}


def _read_one_by_one(raw: msgspec.Raw, instances: list[ObservedInstance]) -> Iterator[str]:
    """Read an application instance by instance into `instances`, and malformed ones of others as
    far as possible. Yield the labels of those."""
    application = _RAW_APPLICATION.decode(raw)
    try:
        name = _NAME.decode(application.name)
    except UnicodeDecodeError:  # instances have their own name of the app
        name = None
    for document in _raw_each(application.instance):
        try:
            instances.append(_observed(_DOCUMENT.decode(document), name))
        except UNREADABLE as error:
            label, readable = _salvage(document, name, reason(error))
            instances.append(readable)
            yield label


def _salvage(raw: msgspec.Raw, app: str | None, why: str) -> tuple[str, ObservedInstance]:
    """Return the label of a malformed instance, and the readable part of it. Raise RegistryUnusable
    if it may be ours, and would be registered or removed wrongly."""
    document = _decoded_or_none(bytes(raw).decode(errors="replace").encode(), _RAW_FIELDS)
    fields: dict[str, msgspec.Raw] = document or {}
    given_id = _decoded_or_none(fields.get("instanceId"), _ANY)
    given_id = given_id or _decoded_or_none(fields.get("hostName"), _ANY)
    label = excerpt(f"{app}/{given_id}", most=120)
    has_our_id = isinstance(given_id, str) and _OUR_ID.fullmatch(given_id) is not None
    # Without it, an instance of ours would look as if Eureka had lost it.
    if document is None or has_our_id or _may_have_our_mark(fields.get("metadata")):
        raise RegistryUnusable(f"an instance that could be ours is malformed: {label} ({why})")
    # Each field by itself: the others of a malformed instance may be sound.
    kept: dict[str, Any] = {}
    unread: set[str] = set()
    for name, (written_name, decoder) in _FIELDS.items():
        value = fields.get(written_name)
        if value is None:
            continue
        try:
            if _NO_TEXT in bytes(value):
                raise ValueError("a byte that is no text")
            kept[name] = decoder.decode(value)
            alone: dict[str, Any] = {"app": "A", "instance_id": "i", name: kept[name]}
            _observed(_Document(**alone), None)
        except UNREADABLE:
            kept.pop(name, None)
            unread.add(name)
    return label, _in_part(_Document(**kept), app, unread)


def _in_part(document: _Document, app: str | None, unread: set[str]) -> ObservedInstance:
    """Return our value of an instance that was read in part. Its app and id may stand elsewhere,
    else they are empty."""
    name, instance_id = document.app or app or "", document.instance_id or document.host_name or ""
    unread -= {"app", "instance_id"}
    if not name:
        unread.add("app")
    if not instance_id:
        unread.add("instance_id")
    observed = _with_key(document, InstanceKey(name.upper(), instance_id))
    return replace(observed, unread=frozenset(unread))


def _may_have_our_mark(metadata: msgspec.Raw | None) -> bool:
    """Return whether metadata have a mark of ours, or cannot be read."""
    if metadata is None or bytes(metadata).strip() == b"null":
        return False
    keys = _decoded_or_none(metadata, _RAW_FIELDS)
    return keys is None or any(key.startswith(_OUR_METADATA) for key in keys)


def _decoded_or_none(raw: bytes | msgspec.Raw | None, decoder: msgspec.json.Decoder[Any]) -> Any:
    try:
        return None if raw is None else decoder.decode(raw)
    except UNREADABLE:
        return None


def _observed(document: _Document, app: str | None) -> ObservedInstance:
    """Return our value of an instance; raise UNREADABLE without an app or id, or for a number that
    is none."""
    name, instance_id = document.app or app, document.instance_id or document.host_name
    if not name or not instance_id:
        raise msgspec.ValidationError("no app name or no id")
    return _with_key(document, InstanceKey(intern(name.upper()), instance_id))


def _with_key(document: _Document, key: InstanceKey) -> ObservedInstance:
    lease = document.lease_info or _NO_LEASE
    return ObservedInstance(
        instance=_instance(document, key, lease),
        last_dirty_timestamp=int(document.last_dirty_timestamp or 0),
        last_renewal=int(lease.last_renewal_timestamp or 0),
        registered=int(lease.registration_timestamp or 0),
    )


def _instance(document: _Document, key: InstanceKey, lease: _Lease) -> Instance:
    return Instance(
        key=key,
        host_name=document.host_name or "",
        ip_addr=document.ip_addr or "",
        port=_read_port(document.port),
        secure_port=_read_port(document.secure_port),
        vip_address=intern(document.vip_address or ""),
        secure_vip_address=intern(document.secure_vip_address or ""),
        status=_STATUSES.get(document.status or "", InstanceStatus.UNKNOWN),
        lease=_lease_times(lease.renewal_interval_in_secs, lease.duration_in_secs),
        metadata=_read_metadata(document.metadata),
        home_page_url=document.home_page_url or "",
        status_page_url=document.status_page_url or "",
        health_check_url=document.health_check_url or "",
        override=_read_override(document),
    )


def _read_override(document: _Document) -> InstanceStatus:
    """Return the override, by the first of its two spellings that names a status."""
    for written in (document.overridden_status, document.overridden_legacy):
        override = _STATUSES.get(written or "", InstanceStatus.UNKNOWN)
        if override is not InstanceStatus.UNKNOWN:
            break
    return override


@lru_cache(maxsize=1024)  # most instances have the same times
def _lease_times(renewal: int | str | None, duration: int | str | None) -> LeaseTimes:
    return LeaseTimes(int(renewal or 0), int(duration or 0))


def _read_port(port: _Port | None) -> Port:
    return _NO_PORT if port is None else _port(port.number, port.enabled)


@lru_cache(maxsize=1024, typed=True)
def _port(number: int | str | None, enabled: bool | str | None) -> Port:
    return Port(int(number or 0), enabled is True or enabled == "true")


def _read_metadata(metadata: dict[str, str | int | float | bool | None] | None) -> dict[str, str]:
    """Return metadata with text values, without `@class`, which means empty metadata
    (`InstanceInfoSerializer`)."""
    if not metadata:
        return {}
    if "@class" not in metadata and _is_text_alone(metadata):
        texts = cast("dict[str, str]", metadata)  # nearly always
    else:
        texts = {}
        for key, value in metadata.items():
            if isinstance(value, str) and key != "@class":
                texts[key] = value
            elif value is not None and key != "@class":
                texts[key] = str(value).lower()
    for mark in _ALIKE:
        if mark in texts:
            texts[mark] = intern(texts[mark])
    return texts


def _is_text_alone(metadata: dict[str, str | int | float | bool | None]) -> bool:
    return _TEXT.issuperset(map(type, metadata.values()))


def _raw_each(items: list[msgspec.Raw] | dict[str, msgspec.Raw]) -> list[msgspec.Raw]:
    return items if isinstance(items, list) else [msgspec.Raw(msgspec.json.encode(items))]
