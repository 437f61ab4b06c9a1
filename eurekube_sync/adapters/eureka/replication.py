"""Eureka's batches of writes (`ReplicationList`, `ReplicationListResponse`), and which servers
replicate to which (`StatusInfo`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import msgspec

from eurekube_sync.adapters.eureka import wire
from eurekube_sync.adapters.eureka.address import EurekaAddress
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.model.errors import ConfigurationError, RegistryUnusable
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Dated
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.text import counted

SIZE = 250  # the most items of a batch, as between servers (`PeerEurekaNode.BATCH_SIZE`)
# Of one body: half of nginx's limit; 250 instances with little metadata have 160 kB
_MOST_BYTES = 512 * 1024
_OLDER_THAN_ALL = -1
_LARGEST_STATUS = 1024 * 1024
# For a registration to reach the other peers, which replicate every 0.5 s
REPLICATION_SECONDS = 5.0


class ServerStatus(NamedTuple):
    instance_id: str  # of the server itself; may be empty
    replicas: tuple[str, ...]  # printable addresses of the servers to which it replicates
    ip_addr: str = ""  # its own, as it says; may be empty
    ports: frozenset[int] = frozenset()  # its own, as it says


class _Reply(msgspec.Struct, rename="camel"):
    status_code: int
    response_entity: msgspec.Raw = msgspec.Raw(b"null")


class _Replies(msgspec.Struct, rename="camel"):
    response_list: list[_Reply]


_REPLIES = msgspec.json.Decoder(_Replies)


def heartbeat(key: InstanceKey) -> bytes:
    return _item("Heartbeat", key)  # without a timestamp, because a newer one is a 404


def reading(key: InstanceKey) -> bytes:
    """Renew a lease, and ask for its instance. To a heartbeat with an older timestamp than the
    instance has, Eureka answers 409 and the instance, as an uncached read shows it
    (`InstanceResource.validateDirtyTimestamp`)."""
    return _item("Heartbeat", key, lastDirtyTimestamp=_OLDER_THAN_ALL)


def question(key: InstanceKey) -> bytes:
    """Ask whether an instance is registered, by a change of status that names none. Eureka answers
    404 if an uncached read would, else 500, and changes nothing
    (`InstanceResource.statusUpdate`)."""
    return _item("StatusUpdate", key)


def cancel(key: InstanceKey) -> bytes:
    return _item("Cancel", key)


def register(dated: Dated) -> bytes:
    """Return a registration. Raise RegistryRejected for metadata that would break Eureka's list for
    everybody."""
    document = wire.instance_document(dated.instance, dirty_timestamp=dated.dirty_timestamp)
    return _item(
        "Register",
        dated.instance.key,
        lastDirtyTimestamp=dated.dirty_timestamp,
        instanceInfo=document,
    )


def fitting(items: Sequence[bytes]) -> Sequence[bytes]:
    """Return the first items, as many as fit into one body, but at least one."""
    length = 0
    for number, item in enumerate(items):
        length += len(item) + 1  # with the comma
        if length > _MOST_BYTES and number > 0:
            return items[:number]
    return items


def decode_answers(body: bytes, *, items: int) -> list[int]:
    return [reply.status_code for reply in _replies(body, items)]


def decode_readings(body: bytes, *, items: int) -> list[ObservedInstance | None]:
    """Return the instance that each reply shows; None where it shows none, or one that cannot be
    read."""
    return [wire.decode_shown(reply.response_entity) for reply in _replies(body, items)]


def _replies(body: bytes, items: int) -> list[_Reply]:
    try:
        replies = _REPLIES.decode(body).response_list
    except UNREADABLE:
        raise RegistryUnusable("Eureka's answer to a batch is not of the known form") from None
    if len(replies) != items:
        got = counted(len(replies), "reply", "replies")
        raise RegistryUnusable(f"Eureka answered a batch of {counted(items, 'item')} with {got}")
    return replies


def decode_status(body: bytes) -> ServerStatus:
    """Decode the XML of `GET /status`. Raise RegistryUnusable, also if it declares a document
    type."""
    if len(body) > _LARGEST_STATUS:
        raise RegistryUnusable("Eureka's status page is too long to be one")
    parser = ElementTree.XMLParser(target=_WithoutDoctype())
    try:
        parser.feed(body)
        status = parser.close()
    except ElementTree.ParseError:
        raise RegistryUnusable("Eureka's status page is not XML") from None
    replicas = status.findtext("applicationStats/registered-replicas")
    if replicas is None:
        raise RegistryUnusable("Eureka's status page does not say which replicas the server has")
    return ServerStatus(
        instance_id=printable((status.findtext("instanceInfo/instanceId") or "").strip()),
        replicas=tuple(map(_printable, replicas.replace(",", " ").split())),
        ip_addr=(status.findtext("instanceInfo/ipAddr") or "").strip(),
        ports=frozenset(_enabled_ports(status)),
    )


def _enabled_ports(status: ElementTree.Element) -> Iterator[int]:
    for name in ("port", "securePort"):
        port = status.find(f"instanceInfo/{name}")
        if port is None or port.get("enabled") != "true":
            continue
        number = port.text or ""
        if number.isdecimal():
            yield int(number)


class _WithoutDoctype(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise RegistryUnusable(
            "Eureka's status page declares a document type, which Eureka does not do"
        )


def _item(action: str, key: InstanceKey, **more: Any) -> bytes:
    return msgspec.json.encode({"appName": key.app, "id": key.id, "action": action, **more})


def _printable(url: str) -> str:
    """Write a server's address as ours are written, without a login."""
    try:
        return printable(EurekaAddress.parse(url).url)
    except ConfigurationError:
        return "an address that cannot be read"
