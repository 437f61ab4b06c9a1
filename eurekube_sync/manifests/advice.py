"""What is allowed and still likely to disappoint: warnings on a syncer that is valid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eurekube_sync.manifests.findings import Path

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def advice(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Path and reason of each warning."""
    yield from _names(spec)
    if spec.get("service", {}).get("address") == "ClusterIP":
        yield ("service", "address"), "a ClusterIP is rarely reachable from outside the cluster"


def _names(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Callers put the VIP into a URL as its host: Feign, for one, refuses an underscore there."""
    places: dict[Path, str] = {}
    for field in ("vipAddress", "secureVipAddress"):
        if field in spec:
            places[(field,)] = spec[field]
    if "vipAddress" not in spec and "appName" in spec:
        places[("appName",)] = spec["appName"]
    elif "vipAddress" not in spec and "app" in spec["selector"]:
        places[("selector", "app")] = spec["selector"]["app"]
    for path, text in places.items():
        for name in text.split(","):
            if not _HOST_NAME.fullmatch(name.partition(":")[0]):
                yield path, f'"{name}" is no legal host name: callers that put it into a URL, such as Feign, refuse it'
