"""The shape of Eureka's JSON, as far as it is read; `wire` gives it meaning.

Servers differ: `$` and `@enabled` are text or native, old codecs collapse a single element into an object, and the
override has two spellings (`EurekaJacksonCodec`).
"""

from __future__ import annotations

import msgspec


class PortDocument(msgspec.Struct, gc=False):
    """A port: both of its fields are text or native, by the server."""

    number: int | str | None = msgspec.field(name="$", default=None)
    enabled: bool | str | None = msgspec.field(name="@enabled", default=None)


class LeaseDocument(msgspec.Struct, rename="camel", gc=False):
    """A lease: what the client asked for, and when the server last saw it."""

    renewal_interval_in_secs: int | str | None = None
    duration_in_secs: int | str | None = None
    last_renewal_timestamp: int | str | None = None


class InstanceDocument(msgspec.Struct, rename="camel", gc=False):
    """What a pass needs of an instance; everything else is skipped unread."""

    instance_id: str | None = None
    host_name: str | None = None
    app: str | None = None
    ip_addr: str | None = None
    status: str | None = None
    overridden_status: str | None = None
    overridden_legacy: str | None = msgspec.field(name="overriddenstatus", default=None)
    port: PortDocument | None = None
    secure_port: PortDocument | None = None
    lease_info: LeaseDocument | None = None
    metadata: dict[str, str | int | float | bool | None] | None = None
    vip_address: str | None = None
    secure_vip_address: str | None = None
    last_dirty_timestamp: int | str | None = None
    home_page_url: str | None = None
    status_page_url: str | None = None
    health_check_url: str | None = None


class ApplicationDocument(msgspec.Struct):
    """An application; without `instance` it is none."""

    instance: list[InstanceDocument] | InstanceDocument
    name: str | None = None


class ApplicationsDocument(msgspec.Struct):
    """All applications, and how many instances of each status they hold. Each is read by itself: the documents of all
    of them at once would be a third of a pass's memory."""

    application: list[msgspec.Raw]
    apps__hashcode: str | None = None


class ListDocument(msgspec.Struct):
    applications: ApplicationsDocument


class OneDocument(msgspec.Struct):
    instance: InstanceDocument


class RawApplication(msgspec.Struct):
    """An application whose instances are not read yet."""

    instance: msgspec.Raw
    name: msgspec.Raw = msgspec.Raw(b"null")


class RawApplications(msgspec.Struct):
    application: msgspec.Raw
    apps__hashcode: str | None = None


class RawList(msgspec.Struct):
    applications: RawApplications


LIST = msgspec.json.Decoder(ListDocument)
APPLICATION = msgspec.json.Decoder(ApplicationDocument)
RAW_LIST = msgspec.json.Decoder(RawList)
ONE = msgspec.json.Decoder(OneDocument)
