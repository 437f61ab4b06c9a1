"""Eureka's JSON (`EurekaJacksonCodec`), read tolerantly. Servers differ: `$` and `@enabled` are
text or native, the override has two spellings, and old codecs write a single element without its
array."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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

_DATA_CENTER = {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"}
_OUR_METADATA = "eurekube."
_OUR_ID = re.compile(r"[a-z0-9-]+(:[^:]+){3}:\d+")
_COUNTS = re.compile(r"[A-Z_]+?_(\d+)_")
_METADATA_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NO_PORT, _NO_LEASE = Port(0, False), LeaseTimes(0, 0)
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


class _One(msgspec.Struct):
    instance: _Document


class _Application(msgspec.Struct):
    instance: list[_Document] | _Document  # required
    name: str | None = None


class _RawApplication(msgspec.Struct):
    instance: list[msgspec.Raw] | dict[str, msgspec.Raw]
    name: msgspec.Raw = msgspec.Raw(b"null")


class _Applications(msgspec.Struct):
    application: (
        list[msgspec.Raw] | dict[str, msgspec.Raw]
    )  # decoded one by one, to save a third of a pass's memory
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
        self._known: _Known | None = None

    @contextmanager
    def reading(self, afresh: _Read) -> Iterator[_Read]:
        """Yield the function that reads an instance of a list, by `afresh` if it changed. Forget
        the last list then."""
        before = self._known
        now: _Known = {}

        def read(document: _Document, app: str | None) -> ObservedInstance:
            lease = document.lease_info
            renewal = 0
            if lease is not None:
                renewal, lease.last_renewal_timestamp = int(lease.last_renewal_timestamp or 0), None
            key = (document.app or app, document.instance_id)
            known, observed = before.get(key, (None, None)) if before else (None, None)
            if observed is None or known != document:
                known = (
                    document
                    if _TEXT.issuperset(map(type, (document.metadata or {}).values()))
                    else None
                )
                observed = afresh(document, app)
            if observed.last_renewal != renewal:
                same, dirty, registered = (
                    observed.instance,
                    observed.last_dirty_timestamp,
                    observed.registered,
                )
                observed = ObservedInstance(
                    instance=same,
                    last_dirty_timestamp=dirty,
                    last_renewal=renewal,
                    registered=registered,
                )
            now[observed.key] = known, observed
            return observed

        yield read if before is not None else afresh
        self._known = now


class DecodedList(NamedTuple):
    instances: tuple[ObservedInstance, ...]
    malformed: tuple[
        str, ...
    ] = ()  # others' instances that could be read only in part, or not at all


def decode_list(body: bytes, decoded: Decoded | None = None) -> DecodedList:
    """Read `GET /apps`. Raise RegistryUnusable if it is no registry, or if an instance of ours may
    be missing, as with fewer instances than `apps__hashcode` counts
    (`Applications.getReconcileHashCode`)."""
    instances: list[ObservedInstance] = []
    malformed: list[str] = []
    with _reading("a registry"), (decoded or Decoded()).reading(_observed) as read:
        applications = _LIST.decode(body).applications
        said = sum(int(count) for count in _COUNTS.findall(applications.apps__hashcode or ""))
        for raw in _raw_each(applications.application):
            try:
                application = _APPLICATION.decode(raw)
                listed = application.instance
                listed = listed if isinstance(listed, list) else [listed]
                instances += [read(instance, application.name) for instance in listed]
            except UNREADABLE:
                _read_one_by_one(raw, instances, malformed)
    if len(instances) + sum(label.startswith("?") for label in malformed) < said:
        why = (
            "fewer instances than its own apps__hashcode counts: something between us and the "
            "server shortens it"
        )
        raise RegistryUnusable(f"the list holds {why}")
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
        why = (
            f"is not complete JSON ({reason(error)}): it was cut on its way, or another program "
            "answers in its place"
        )
        if (
            isinstance(error, msgspec.ValidationError) or type(error) is ValueError
        ):  # ValueError: of a number
            why = f"is JSON but not {what} ({reason(error)}): check that this is the URL of Eureka"
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
            why = f"metadata {key!r} would make the list unreadable in XML for every client"
            use = (
                "use letters, digits, `.`, `_` and `-` in keys and no control characters in values"
            )
            raise RegistryRejected(f"instance {instance.key} was not sent: {why}; {use}")
    return _written(instance, dirty_timestamp=dirty_timestamp)


def observed_document(observed: ObservedInstance) -> dict[str, Any]:
    """Return the JSON object that Eureka lists for this instance."""
    body = _written(observed.instance, dirty_timestamp=observed.last_dirty_timestamp)
    times = {
        "registrationTimestamp": observed.registered,
        "lastRenewalTimestamp": observed.last_renewal,
    }
    return body | {"leaseInfo": body["leaseInfo"] | times}


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


def _read_one_by_one(
    raw: msgspec.Raw, instances: list[ObservedInstance], malformed: list[str]
) -> None:
    """Read an application instance by instance, and malformed ones of others as far as possible."""
    application = _RAW_APPLICATION.decode(raw)
    try:
        name = _NAME.decode(application.name)
    except UnicodeDecodeError:  # instances have their own name of the app
        name = None
    for each in _raw_each(application.instance):
        try:
            instances.append(_observed(_DOCUMENT.decode(each), name))
        except UNREADABLE as error:
            label, kept = _salvage(each, name, reason(error))
            instances += [kept] if kept else []
            malformed.append(label if kept else f"?{label}")


def _salvage(raw: msgspec.Raw, app: str | None, why: str) -> tuple[str, ObservedInstance | None]:
    """Return the label of a malformed instance, and the readable part of it, if any. A byte that is
    no text is U+FFFD.

    Raise RegistryUnusable if it may be ours, and would be registered or removed wrongly. It is not
    ours if its metadata is absent, or readable without our marks, and its id has not our form."""
    document = _decoded_or_none(bytes(raw).decode(errors="replace").encode(), _RAW_FIELDS)
    fields: dict[str, msgspec.Raw] = document or {}
    given_id = _decoded_or_none(fields.get("instanceId"), _ANY)
    given_id = given_id or _decoded_or_none(fields.get("hostName"), _ANY)
    label = excerpt(f"{app}/{given_id}", most=120)
    metadata = fields.get("metadata", msgspec.Raw(b"null"))
    has_none = bytes(metadata).strip() == b"null"
    keys = () if has_none else _decoded_or_none(metadata, _RAW_FIELDS)
    is_ours = document is None or keys is None or any(key.startswith(_OUR_METADATA) for key in keys)
    if is_ours or (isinstance(given_id, str) and _OUR_ID.fullmatch(given_id)):
        raise RegistryUnusable(f"an instance that could be ours is malformed: {label} ({why})")
    kept: dict[str, Any] = {}
    for name, (written_name, decoder) in _FIELDS.items():
        value = _decoded_or_none(fields.get(written_name), decoder)
        with suppress(*UNREADABLE):
            _observed(_Document(**({"app": "A", "instance_id": "i"} | {name: value})), None)
            kept[name] = value
    try:
        return label, _observed(_Document(**kept), app)
    except UNREADABLE:
        return label, None


def _decoded_or_none(raw: bytes | msgspec.Raw | None, decoder: msgspec.json.Decoder[Any]) -> Any:
    try:
        return None if raw is None else decoder.decode(raw)
    except UNREADABLE:
        return None


def _observed(instance: _Document, app: str | None) -> ObservedInstance:
    """Return our value of an instance; raise UNREADABLE without an app or id, or for a number that
    is none."""
    name, instance_id = instance.app or app, instance.instance_id or instance.host_name
    if not name or not instance_id:
        raise msgspec.ValidationError("no app name or no id")
    lease = instance.lease_info
    override = _STATUSES.get(instance.overridden_status or "", InstanceStatus.UNKNOWN)
    if override is InstanceStatus.UNKNOWN:
        override = _STATUSES.get(instance.overridden_legacy or "", InstanceStatus.UNKNOWN)
    return ObservedInstance(
        instance=Instance(
            key=InstanceKey(intern(name.upper()), instance_id),
            host_name=instance.host_name or "",
            ip_addr=instance.ip_addr or "",
            port=_read_port(instance.port),
            secure_port=_read_port(instance.secure_port),
            vip_address=intern(instance.vip_address or ""),
            secure_vip_address=intern(instance.secure_vip_address or ""),
            status=_STATUSES.get(instance.status or "", InstanceStatus.UNKNOWN),
            lease=_lease_times(lease.renewal_interval_in_secs, lease.duration_in_secs)
            if lease
            else _NO_LEASE,
            metadata=_read_metadata(instance.metadata),
            home_page_url=instance.home_page_url or "",
            status_page_url=instance.status_page_url or "",
            health_check_url=instance.health_check_url or "",
            override=override,
        ),
        last_dirty_timestamp=int(instance.last_dirty_timestamp or 0),
        last_renewal=int(lease.last_renewal_timestamp or 0) if lease else 0,
        registered=int(lease.registration_timestamp or 0) if lease else 0,
    )


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
    if "@class" in metadata or not _TEXT.issuperset(map(type, metadata.values())):
        values = (
            (key, value) for key, value in metadata.items() if value is not None and key != "@class"
        )
        metadata = {
            key: value if isinstance(value, str) else str(value).lower() for key, value in values
        }
    texts = cast("dict[str, str]", metadata)
    for key in _ALIKE:
        if key in texts:
            texts[key] = intern(texts[key])
    return texts


def _raw_each(items: list[msgspec.Raw] | dict[str, msgspec.Raw]) -> list[msgspec.Raw]:
    return items if isinstance(items, list) else [msgspec.Raw(msgspec.json.encode(items))]
