"""Who may watch the process, and how; and whether its passes are recorded, where, and how much."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import click

from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import File, Value
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    """Where metrics go; nowhere by default."""

    listen: tuple[str, int] | None = None
    """Host and port; an empty host is every address of the machine."""
    metrics_file: Path | None = None
    push_metrics: str | None = None

    @property
    def wanted(self) -> bool:
        return bool(self.listen or self.metrics_file or self.push_metrics)


_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\]]*)):([0-9]{1,5})")


def _address(text: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text.strip())
    if not found or int(found[3]) > 65535:
        raise ValueError(f"{text!r} is not an address to listen on; write :8080, 127.0.0.1:8080 or [::1]:8080")
    return found[1] or found[2] or "", int(found[3])


def _url(text: str) -> str:
    parts = urlsplit(text.strip())
    if "@" in text:
        raise ValueError("the URL of a Pushgateway must not have a login; write http://pushgateway:9091")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is not the URL of a Pushgateway; write http://pushgateway:9091")
    return text.strip()


monitoring_options = group(
    "monitoring",
    Monitoring,
    option(
        "--listen",
        type=Value("[host]:port", _address),
        default=None,
        help="Serve /metrics, /livez, /readyz and a page for people at this address, such as :8080. Anybody who can "
        "reach the address can read them.",
    ),
    option(
        "--metrics-file",
        type=File(dir_okay=False, path_type=Path),
        default=None,
        help="Write the metrics into this file after each pass, for the textfile collector of node_exporter.",
    ),
    option(
        "--push-metrics",
        type=Value("url", _url),
        default=None,
        help="Push the metrics to this Pushgateway after each pass.",
    ),
    section=Section.WATCHING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Where records go; nowhere by default."""

    record: Path | None = None
    record_limit: int = 256
    """MiB of all records together."""


recording_options = group(
    "recording",
    Recording,
    option(
        "--record",
        metavar="DIR",
        type=File(file_okay=False, path_type=Path),
        default=None,
        help="Keep in this folder what each pass read and decided, for eurekube-sync replay. Secrets are left out.",
    ),
    option(
        "--record-limit",
        metavar="MIB",
        type=click.IntRange(1, 1024 * 1024),
        default=256,
        help="The greatest size of the folder of --record. The oldest records are deleted first.",
    ),
    section=Section.WATCHING,
)
