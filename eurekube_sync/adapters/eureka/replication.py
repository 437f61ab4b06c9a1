"""What Eureka servers send to each other, as far as we send it too: batches of writes, and who replicates to whom. The
forms are those of `ReplicationList`, `ReplicationListResponse` and `StatusInfo`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from xml.etree import ElementTree

import msgspec

from eurekube_sync.adapters.eureka import wire
from eurekube_sync.adapters.eureka.address import EurekaAddress
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.model.errors import ConfigurationError, RegistryUnusable
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.ports import Dated
from eurekube_sync.model.wording import counted

_MOST_BYTES = 512 * 1024  # of one body: half of what nginx takes; 250 instances with little metadata are 160 kB
_LARGEST_STATUS = 1024 * 1024
REPLICATION_SECONDS = 5.0  # how long a register may be on its way to the other peers: they replicate every half second


class ServerStatus(NamedTuple):
    instance_id: str  # of the server itself; empty when it does not say
    replicas: tuple[str, ...]  # the printable addresses of those that it sends every write to


class _Reply(msgspec.Struct, rename="camel"):
    status_code: int


class _Replies(msgspec.Struct, rename="camel"):
    response_list: list[_Reply]


def heartbeat(key: InstanceKey) -> bytes:
    return _item("Heartbeat", key)  # without a timestamp: a newer one than the server's would be a 404


def question(key: InstanceKey) -> bytes:
    """Whether an instance is registered: a change of status that names no status. Eureka answers 404 where an uncached
    read is a 404, and 500 of any instance, which it leaves as it is (`InstanceResource.statusUpdate`)."""
    return _item("StatusUpdate", key)


def cancel(key: InstanceKey) -> bytes:
    return _item("Cancel", key)


def register(dated: Dated) -> bytes:
    """A registration. Raises RegistryRejected for what would break the list for everybody."""
    document = wire.instance_document(dated.instance, dirty_timestamp=dated.dirty_timestamp)
    return _item("Register", dated.instance.key, lastDirtyTimestamp=dated.dirty_timestamp, instanceInfo=document)


def fitting(items: Sequence[bytes]) -> Sequence[bytes]:
    """The first of the items, as many as fit into a body that no proxy refuses for its size; one at least."""
    lengths = accumulate(len(item) + 1 for item in items)
    return items[: max(1, sum(length <= _MOST_BYTES for length in lengths))]


def decode_answers(body: bytes, *, items: int) -> list[int]:
    try:
        replies = msgspec.json.decode(body, type=_Replies).response_list
    except UNREADABLE:
        raise RegistryUnusable("Eureka's answer to a batch is not of the known form.") from None
    if len(replies) != items:
        raise RegistryUnusable(
            f"Eureka answered a batch of {counted(items, 'item')} with {counted(len(replies), 'reply', 'replies')}."
        )
    return [reply.status_code for reply in replies]


def decode_status(body: bytes) -> ServerStatus:
    """Read `GET /status` as XML. RegistryUnusable for anything else, and for XML that declares a document type."""
    if len(body) > _LARGEST_STATUS:
        raise RegistryUnusable("Eureka's status page is too long to be one.")
    parser = ElementTree.XMLParser(target=_WithoutDoctype())
    try:
        parser.feed(body)
        status = parser.close()
    except ElementTree.ParseError:
        raise RegistryUnusable("Eureka's status page is not XML.") from None
    replicas = status.findtext("applicationStats/registered-replicas")
    if replicas is None:
        raise RegistryUnusable("Eureka's status page does not say which replicas the server has.")
    return ServerStatus(
        instance_id=printable((status.findtext("instanceInfo/instanceId") or "").strip()),
        replicas=tuple(_printable(one) for one in replicas.replace(",", " ").split()),
    )


class _WithoutDoctype(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise RegistryUnusable("Eureka's status page declares a document type, which Eureka does not do.")


def _item(action: str, key: InstanceKey, **more: Any) -> bytes:
    return msgspec.json.encode({"appName": key.app, "id": key.id, "action": action, **more})


def _printable(url: str) -> str:
    """An address as ours are written. The servers' own may hold user and password."""
    try:
        return printable(EurekaAddress.parse(url).url)
    except ConfigurationError:
        return "an address that cannot be read"
