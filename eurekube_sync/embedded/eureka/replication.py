"""What Eureka servers send to each other, read and written: batches (`ReplicationList`), and `StatusInfo`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from eurekube_sync.embedded.eureka import codec


class Item(msgspec.Struct):
    """`ReplicationInstance`, as far as it is acted on; what is missing is None."""

    action: Literal["Heartbeat", "Register", "Cancel", "StatusUpdate", "DeleteStatusOverride"] | None = None
    app: str | None = msgspec.field(name="appName", default=None)
    id: str | None = None
    instance: Any = msgspec.field(name="instanceInfo", default=None)
    """An `InstanceInfo`, once it is read."""


class _Batch(msgspec.Struct):
    items: list[Item] = msgspec.field(name="replicationList")


def parse_batch(body: bytes, *, now_ms: int) -> list[Item]:
    """Read a body; a `ValueError` where Jackson throws, which makes a 400 of the whole."""
    try:
        items = msgspec.json.decode(body, type=_Batch).items
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    for item in items:
        if item.instance is not None:
            item.instance = codec.parse_instance(item.instance, now_ms=now_ms)
    return items


def write_answers(codes: Sequence[int]) -> bytes:
    """`ReplicationListResponse`: one status code for each item, in order."""
    return json.dumps({"responseList": [{"statusCode": code} for code in codes]}, separators=(",", ":")).encode()


def status_document(replicas: Sequence[str], host: str) -> dict[str, Any]:
    """`StatusInfo`, its figures made up; `host` is where the server was called."""
    name, _, port = host.partition(":")
    return {
        "generalStats": {"num-of-cpus": 1, "server-uptime": "00:00"},
        "applicationStats": {
            "registered-replicas": ", ".join(replicas),
            "available-replicas": "",
            "unavailable-replicas": "".join(f"{url}," for url in replicas),
        },
        "instanceInfo": {
            "instanceId": f"{name}:eureka-server:{port or 80}",
            "hostName": name,
            "app": "EUREKA-SERVER",
            "status": "UP",
        },
    }
