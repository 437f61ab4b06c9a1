"""The metrics in Prometheus' own format: as text, as a file, and pushed. The one file that imports its client."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest, pushadd_to_gateway
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.cli.monitoring.metrics import DURATION, LAST_GOOD, METRICS, SUM
from eurekube_sync.cli.monitoring.monitor import Monitor
from eurekube_sync.files import open_regular, write_new

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PUSH_SECONDS = 5.0
_MOST_BYTES = 32 * 1024 * 1024
"""Of our own file: 100 times what 1000 syncers take."""
_log = logging.getLogger(__name__)
_EARLIER = re.compile(rf"^{LAST_GOOD.name}\{{.*\}} (\S+)$", re.MULTILINE)


class _Collector(Collector):
    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def collect(self) -> Iterator[Family]:
        """Each metric that has a value."""
        values = self._monitor.values()
        for metric in METRICS:
            found = dict(values.get(metric, {}))
            if not found:
                continue
            if metric is DURATION:
                total = found.pop(SUM)
                buckets = [(bound, count) for (bound,), count in found.items()]
                yield HistogramMetricFamily(metric.name, metric.help, buckets=buckets, sum_value=total)
                continue
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=metric.labels)
            for labels, value in sorted(found.items()):
                family.add_metric(labels, value)
            yield family


def _registry(monitor: Monitor) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Collector(monitor))
    return registry


def text(monitor: Monitor) -> bytes:
    """What a scrape gets, with what the machine says of this process."""
    registry = _registry(monitor)
    ProcessCollector(registry=registry)
    return generate_latest(registry)


def write_file(monitor: Monitor, path: Path) -> None:
    """For the textfile collector of node_exporter, which tells of processes itself. The file is replaced at once; what
    fails is logged."""
    try:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        write_new(path, part, generate_latest(_registry(monitor)), mode=0o644)  # another user collects it
    except OSError as error:
        _log.warning("--metrics-file %s was not written: %s", path, error.strerror or error)


def good_in_file(path: Path) -> float | None:
    """When the last good pass was, by the file that an earlier process left."""
    try:
        with open_regular(path) as file:
            found = _EARLIER.search(file.read(_MOST_BYTES).decode())
        return float(found[1]) if found else None
    except (OSError, ValueError):
        return None


def push(monitor: Monitor, url: str, group: dict[str, str]) -> None:
    """To a Pushgateway; what is not known now keeps its value there. What fails, or takes too long, is logged."""

    def send() -> None:
        pushadd_to_gateway(url, "eurekube-sync", _registry(monitor), grouping_key=group, timeout=PUSH_SECONDS)

    try:
        in_side_thread(send).result(PUSH_SECONDS)  # its own timeout bounds no name server, and no answer as a whole
    except Exception as error:  # noqa: BLE001 - whatever urllib raises; metrics must not end a pass
        _log.warning("the metrics were not pushed to --push-metrics %s: %s", url, str(error) or "no answer in time")
