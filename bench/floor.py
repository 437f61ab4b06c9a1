"""The least that any program has to do: fetch all lists and discard them, and send the writes in
batches of 250.

`python -m bench.floor WHERE.json`: a process of its own, without a client library, and nothing is
read of any answer. `WHERE` is what `bench.measure` writes: the addresses, and how many instances
there are; `register` says that these are registered first, and that each syncer gets a finalizer
before and a status after it, 16 at a time.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

_BATCH = 250
_WRITERS = 16
_TOKEN = re.compile(rb'"continue":"([^"]*)"')
_LISTS = (
    "/apis/eurekube.io/v1/eurekasyncers",
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices",
)
_FINALIZER = [{"op": "add", "path": "/metadata/finalizers", "value": ["eurekube.io/floor"]}]
_CONDITION = {
    "status": "True",
    "reason": "InSync",
    "message": "10 of 10 instances are UP in Eureka, as the cluster says.",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 1,
}
_STATUS = {
    "observedGeneration": 1,
    "conditions": [
        {"type": name} | _CONDITION for name in ("Ready", "Synced", "Conflict", "RemovalHeld")
    ],
    "ready": "10/10",
    "desired": 10,
    "registered": 10,
    "up": 10,
    "down": 0,
    "appName": "APP",
    "vipAddress": "app",
    "apps": ["APP"],
}
"""About what the program writes."""


def main() -> None:
    """One pass."""
    where: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    registry, prefix = _connect(where["eureka"], None)
    registry.request(
        "GET", f"{prefix}/apps", headers={"Accept": "application/json", "Accept-Encoding": "gzip"}
    )
    registry.getresponse().read()
    cluster, _ = _connect(where["kubernetes"], where["ca_file"])
    for path in _LISTS:
        _list(cluster, path, where["token"])
    keys = [(f"APP-{number // 10}", f"floor:10.{number // 65025}.{number // 255 % 255}.{number % 255}:8080")
            for number in range(where["instances"])]  # fmt: skip
    if where["register"]:
        registry.close()  # and opened again: a server closes a connection that is idle for so long
        _patch_all(where, "", "application/json-patch+json", _FINALIZER)
    for start in range(0, len(keys), _BATCH):
        chunk = keys[start : start + _BATCH]
        if where["register"]:
            _batch(registry, prefix, [_registration(app, key) for app, key in chunk])
        _batch(
            registry,
            prefix,
            [{"appName": app, "id": key, "action": "Heartbeat"} for app, key in chunk],
        )
    if where["register"]:
        _patch_all(where, "/status", "application/merge-patch+json", {"status": _STATUS})


def _patch_all(where: dict[str, Any], subresource: str, content_type: str, body: Any) -> None:
    """Every syncer, by 16 connections."""
    open_ = threading.local()
    headers = {"Content-Type": content_type} | _login(where["token"])

    def patch(path: str) -> None:
        if not hasattr(open_, "cluster"):
            open_.cluster, _ = _connect(where["kubernetes"], where["ca_file"])
        open_.cluster.request("PATCH", f"{path}{subresource}", json.dumps(body), headers)
        answer = open_.cluster.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"PATCH {path}{subresource}: {answer.status} {said[:300]!r}")

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(patch, _syncers(where)))


def _syncers(where: dict[str, Any]) -> Iterable[str]:
    """As `bench.objects` names them."""
    for number in range(where["instances"] // 10):
        yield f"/apis/eurekube.io/v1/namespaces/team-{number // 10}/eurekasyncers/app-{number}"


def _connect(url: str, ca_file: str | None) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=ca_file)
        return http.client.HTTPSConnection(parts.hostname, parts.port, context=context), parts.path
    return http.client.HTTPConnection(parts.hostname, parts.port), parts.path


def _login(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _list(cluster: http.client.HTTPConnection, path: str, token: str) -> None:
    following = ""
    headers = {"Accept": "application/json"} | _login(token)
    while True:
        cluster.request("GET", f"{path}?limit=500&continue={quote(following)}", headers=headers)
        body = cluster.getresponse().read()
        found = _TOKEN.search(body)
        if not found or not found[1]:
            return
        following = found[1].decode()


def _batch(registry: http.client.HTTPConnection, prefix: str, items: list[dict[str, Any]]) -> None:
    body = json.dumps({"replicationList": items})
    registry.request(
        "POST", f"{prefix}/peerreplication/batch/", body, {"Content-Type": "application/json"}
    )
    registry.getresponse().read()


def _registration(app: str, key: str) -> dict[str, Any]:
    address = key.split(":")[1]
    instance = {
        "instanceId": key,
        "hostName": address,
        "ipAddr": address,
        "app": app,
        "vipAddress": app.lower(),
        "status": "UP",
        "port": {"$": 8080, "@enabled": "true"},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 300},
        "lastDirtyTimestamp": "1795248000785",
    }
    return {"appName": app, "id": key, "action": "Register", "lastDirtyTimestamp": 1795248000785,
            "instanceInfo": instance}  # fmt: skip


if __name__ == "__main__":
    main()
