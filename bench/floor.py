"""The least that any program has to do: fetch all lists and discard them, and send the writes in batches of 250.

`python -m bench.floor WHERE.json`: a process of its own, without a client library, and nothing is read of any answer.
`WHERE` is what `bench.measure` writes: the addresses, and how many instances there are; `register` says that these are
registered first.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

_BATCH = 250
_TOKEN = re.compile(rb'"continue":"([^"]*)"')
_LISTS = (
    "/apis/eurekube.io/v1/eurekasyncers",
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices",
)


def main() -> None:
    """One pass."""
    where: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    registry, prefix = _connect(where["eureka"], None)
    registry.request("GET", f"{prefix}/apps", headers={"Accept": "application/json", "Accept-Encoding": "gzip"})
    registry.getresponse().read()
    cluster, _ = _connect(where["kubernetes"], where["ca_file"])
    for path in _LISTS:
        _list(cluster, path, where["token"])
    keys = [(f"APP-{number // 10}", f"floor:10.{number // 65025}.{number // 255 % 255}.{number % 255}:8080")
            for number in range(where["instances"])]  # fmt: skip
    for start in range(0, len(keys), _BATCH):
        chunk = keys[start : start + _BATCH]
        if where["register"]:
            _batch(registry, prefix, [_registration(app, key) for app, key in chunk])
        _batch(registry, prefix, [{"appName": app, "id": key, "action": "Heartbeat"} for app, key in chunk])


def _connect(url: str, ca_file: str | None) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=ca_file)
        return http.client.HTTPSConnection(parts.hostname, parts.port, context=context), parts.path
    return http.client.HTTPConnection(parts.hostname, parts.port), parts.path


def _list(cluster: http.client.HTTPConnection, path: str, token: str) -> None:
    following = ""
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    while True:
        cluster.request("GET", f"{path}?limit=500&continue={quote(following)}", headers=headers)
        body = cluster.getresponse().read()
        found = _TOKEN.search(body)
        if not found or not found[1]:
            return
        following = found[1].decode()


def _batch(registry: http.client.HTTPConnection, prefix: str, items: list[dict[str, Any]]) -> None:
    body = json.dumps({"replicationList": items})
    registry.request("POST", f"{prefix}/peerreplication/batch/", body, {"Content-Type": "application/json"})
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
        "dataCenterInfo": {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"},
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 300},
        "lastDirtyTimestamp": "1795248000785",
    }
    return {"appName": app, "id": key, "action": "Register", "lastDirtyTimestamp": 1795248000785,
            "instanceInfo": instance}  # fmt: skip


if __name__ == "__main__":
    main()
