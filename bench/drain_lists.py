"""What the lists of Pods' metadata cost a pass that looks for drain annotations.

Run: python -m bench.drain_lists [pods]. Pages of 500 in the form of a real server's, with short managedFields; each is
decoded and dropped. Time is CPU time, the best of three runs, without the network; memory the peak of what Python
allocates, the bodies not counted.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import tracemalloc
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import projection, wire
from eurekube_sync.adapters.kubernetes.walks import PAGE
from eurekube_sync.desired.drain import known
from eurekube_sync.model.kubernetes import Drainable
from eurekube_sync.model.sources import Complete


def _pod(number: int) -> dict[str, Any]:
    name = f"service-{number // 20}-7d9c5b6f4-{number:05}"
    fields: dict[str, Any] = {
        f"f:{field}": {".": {}, "f:name": {}, "f:value": {}} for field in ("env", "image", "ports", "resources")
    }
    managers = ("kube-controller-manager", "kubelet")
    managed = [
        {"manager": m, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": fields}} for m in managers
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name[:-6], "uid": f"{number:036}"}
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": f"namespace-{number % 50}",
            "uid": f"{number:036}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": name[:-16], "pod-template-hash": "7d9c5b6f4", "team": "shop", "version": "1.2.3"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [owner],
            "managedFields": managed,
        },
    }


def page_of(start: int, count: int) -> bytes:
    """One page."""
    items = [_pod(number) for number in range(start, start + count)]
    head = {"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7"}}
    return json.dumps({**head, "items": items}, separators=(",", ":")).encode()


def read(pages: list[bytes]) -> dict[str, bool]:
    """As a pass does."""
    decode = msgspec.json.Decoder(wire.MetadataItem).decode
    found: list[Drainable] = []
    for page in pages:
        items = msgspec.json.decode(page, type=wire.RawPage).items or ()
        found += [projection.pod_drain(decode(item)) for item in items]
    by_id = known(Complete(data=tuple(found)))
    assert isinstance(by_id, dict)
    return by_id


def main(pods: int) -> None:
    """Measure and print."""
    pages = [page_of(number, PAGE) for number in range(0, pods, PAGE)]
    times = []
    for _ in range(3):
        start = time.process_time()
        assert len(read(pages)) == pods
        times.append(time.process_time() - start)
    tracemalloc.start()
    read(pages)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    size = sum(map(len, pages))
    sys.stdout.write(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n"
        f"{pods} pods, {len(pages)} pages, {size / pods:.0f} bytes each, {size / 1e6:.0f} MB: "
        f"{min(times):.2f} s of CPU, {peak:.0f} MB at most\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000)
