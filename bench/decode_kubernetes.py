"""How a page of EndpointSlices is best decoded: `json` into dicts, or `msgspec` into small structs and our dataclasses.

Run: python -m bench.decode_kubernetes [slices] [endpoints]. Time is CPU time, the best of seven runs; memory is the
peak of what Python allocates while it decodes, the body itself not counted (tracemalloc, in a run of its own).
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import projection, wire

_RUNS = 7


def body_of(slices: int, endpoints: int) -> bytes:
    """A list as the real server sends it, managedFields and all."""
    items = [_slice(number, endpoints) for number in range(slices)]
    head = {"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "metadata": {"resourceVersion": "7"}}
    return json.dumps({**head, "items": items}, separators=(",", ":")).encode()


def _slice(number: int, endpoints: int) -> dict[str, Any]:
    name = f"service-{number}"
    owner = {"apiVersion": "v1", "kind": "Service", "name": name, "uid": f"{number:036}", "controller": True}
    managed = {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "fieldsV1": {"f:endpoints": {}, "f:ports": {}},
    }
    return {
        "metadata": {
            "name": f"{name}-abcde",
            "generateName": f"{name}-",
            "namespace": f"namespace-{number % 50}",
            "uid": f"{number:036}",
            "resourceVersion": str(number),
            "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": name, "kubernetes.io/service-name": name},
            "ownerReferences": [owner],
            "managedFields": [managed],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(number, index) for index in range(endpoints)],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def _endpoint(number: int, index: int) -> dict[str, Any]:
    pod = f"service-{number}-7d9c5b6f4-{index:05}"
    target = {"kind": "Pod", "namespace": f"namespace-{number % 50}", "name": pod, "uid": f"{number:018}{index:018}"}
    return {
        "addresses": [f"10.{number % 250}.{index}.1"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": target,
        "nodeName": f"node-{index}",
        "zone": "zone-a",
    }


def with_json(body: bytes) -> object:
    """The standard library, into dicts."""
    return json.loads(body)


def with_dicts(body: bytes) -> object:
    """msgspec, into dicts: what the structs themselves bring is the rest."""
    return msgspec.json.decode(body)


def with_structs(body: bytes) -> object:
    """Items as bytes, then each into a struct."""
    page = msgspec.json.decode(body, type=wire.RawPage)
    return [_decode(item) for item in page.items or ()]


def with_projection(body: bytes) -> object:
    """What the program does: each struct becomes our dataclass and is dropped."""
    page = msgspec.json.decode(body, type=wire.RawPage)
    return [projection.endpoint_slice(_decode(item)) for item in page.items or ()]


_decode = msgspec.json.Decoder(wire.SliceItem).decode

WAYS: dict[str, Callable[[bytes], object]] = {
    "json, dicts": with_json,
    "msgspec, dicts": with_dicts,
    "msgspec, structs": with_structs,
    "msgspec, structs, our dataclasses": with_projection,
}


def milliseconds(decode: Callable[[bytes], object], body: bytes) -> float:
    """The best of several runs."""
    times = []
    for _ in range(_RUNS):
        gc.collect()
        start = time.process_time()
        decode(body)
        times.append(time.process_time() - start)
    return min(times) * 1000


def megabytes(decode: Callable[[bytes], object], body: bytes) -> float:
    """The peak while it decodes."""
    gc.collect()
    tracemalloc.start()
    decode(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main(slices: int, endpoints: int) -> None:
    """Measure each way and print a table."""
    body = body_of(slices, endpoints)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"
    lines = [
        f"{machine}, Python {platform.python_version()}, msgspec {msgspec.__version__}",
        f"{slices} slices x {endpoints} endpoints, {len(body) / 1e6:.1f} MB",
    ]
    found = {name: (milliseconds(decode, body), megabytes(decode, body)) for name, decode in WAYS.items()}
    first_time, first_memory = next(iter(found.values()))
    for name, (time_, memory) in found.items():
        ratio = f"time 1/{first_time / time_:.1f}, memory 1/{first_memory / memory:.1f}"
        lines.append(f"{name:36} {time_:7.1f} ms {memory:7.1f} MB   {ratio}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sizes = [int(each) for each in sys.argv[1:3]] or [1000, 20]
    main(sizes[0], sizes[1])
