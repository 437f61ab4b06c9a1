"""Decoding a registry of 10,000 instances: `json` against `msgspec`, time and peak memory, as ratios.

Run it from the checkout: `python bench/decode_eureka.py [INSTANCES]`. Times are the best of seven runs without, memory
the peak of one run with tracemalloc; both depend on the machine, which is printed, the ratios much less.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from eurekube_sync.adapters.eureka import documents, wire
from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import Request
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, Port

RUNS = 7
INSTANCES_PER_APP = 10


def registry(count: int) -> bytes:
    """The list of a registry with that many instances, as the embedded server writes it."""
    server = EmbeddedEureka(lambda: 1_795_248_000.0)
    for number in range(count):
        app = f"SERVICE-{number // INSTANCES_PER_APP}"
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        instance = Instance(
            key=InstanceKey(app, f"prod:shop:{app.lower()}:{address}:8080"),
            host_name=address,
            ip_addr=address,
            port=Port(8080, True),
            secure_port=Port(443, False),
            vip_address=app.lower(),
            secure_vip_address=app.lower(),
            status=InstanceStatus.UP,
            lease=LeaseTimes(30, 300),
            metadata={
                "eurekube.owner": "prod",
                "eurekube.cluster": "3f0b9c1e-6a52-4d8a-9a35-0c6de0c8a111",
                "eurekube.syncer": f"shop/{app.lower()}",
                "eurekube.pod": f"{app.lower()}-{number}",
                "zone": "eu-west-1a",
            },
            home_page_url=f"http://{address}:8080/",
            status_page_url=f"http://{address}:8080/actuator/info",
            health_check_url=f"http://{address}:8080/actuator/health",
        )
        body = wire.encode_instance(instance, dirty_timestamp=1_795_248_000_000)
        headers = {"content-type": "application/json"}
        answer = server.handle(Request(method="POST", path=f"/eureka/apps/{app}", headers=headers, body=body))
        if answer.status != 204:
            raise SystemExit(f"the embedded server answered {answer.status}")
    return server.handle(Request(method="GET", path="/eureka/apps", headers={"accept": "application/json"})).body


def seconds(decode: Callable[[bytes], object], body: bytes) -> float:
    """The best of several runs."""
    best = float("inf")
    for _ in range(RUNS):
        gc.collect()
        started = time.perf_counter()
        decode(body)
        best = min(best, time.perf_counter() - started)
    return best


def peak_bytes(decode: Callable[[bytes], object], body: bytes) -> int:
    """The highest memory in use during one run, the body not counted."""
    gc.collect()
    tracemalloc.start()
    decode(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def processor() -> str:
    """The processor's name where Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor() or platform.machine()


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    body = registry(count)
    ways: dict[str, Callable[[bytes], object]] = {
        "json.loads": json.loads,
        "msgspec into structs": documents.LIST.decode,
        "wire.decode_list (what ships)": wire.decode_list,
    }
    measured = {name: (seconds(decode, body), peak_bytes(decode, body)) for name, decode in ways.items()}
    base_time, base_memory = measured["json.loads"]
    out = [
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}, {processor()}",
        f"{count} instances, {len(body) / 2**20:.1f} MiB of JSON",
        f"{'':30}{'time':>10}{'ratio':>8}{'peak':>12}{'ratio':>8}",
    ]
    for name, (spent, peak) in measured.items():
        times, sizes = f"{spent * 1000:.1f} ms", f"{peak / 2**20:.1f} MiB"
        out.append(f"{name:30}{times:>10}{spent / base_time:>8.2f}{sizes:>12}{peak / base_memory:>8.2f}")
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
