"""What Eureka servers send to each other, read and written: batches (`ReplicationList`), and `StatusInfo`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eurekube_sync.embedded.eureka import codec
from eurekube_sync.embedded.eureka.instance import InstanceInfo

_ACTIONS = ("Heartbeat", "Register", "Cancel", "StatusUpdate", "DeleteStatusOverride")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """`ReplicationInstance`, as far as it is acted on; what is missing is None."""

    action: str | None
    app: str | None
    id: str | None
    instance: InstanceInfo | None


def parse_batch(body: bytes, *, now_ms: int) -> list[Item]:
    """Read a body; a `ValueError` or `TypeError` where Jackson throws, which makes a 400 of the whole."""
    items = json.loads(body)["replicationList"]
    if not isinstance(items, list):
        raise ValueError("the list is none")
    return [_item(item, now_ms) for item in items]


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


def _item(item: Any, now_ms: int) -> Item:
    if not isinstance(item, dict) or item.get("action") not in (*_ACTIONS, None):
        raise ValueError("no item, or an unknown action")
    given = item.get("instanceInfo")
    return Item(
        action=item.get("action"),
        app=item.get("appName"),
        id=item.get("id"),
        instance=None if given is None else codec.parse_instance(given, now_ms=now_ms),
    )
