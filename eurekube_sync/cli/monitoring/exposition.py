"""The metrics in Prometheus' format: for a scrape, in a file, and pushed. Only this file imports the
client of Prometheus."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    ProcessCollector,
    generate_latest,
    pushadd_to_gateway,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.cli.monitoring.metrics import (
    DURATION,
    LAST_GOOD,
    METRICS,
    SUM,
    Monitor,
)
from eurekube_sync.files import open_regular, write_new

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PUSH_SECONDS = 5.0
_MOST_BYTES = 32 * 1024 * 1024  # of our own file; 100 times the metrics of 1000 syncers
_log = logging.getLogger(__name__)
_EARLIER = re.compile(rf"^{LAST_GOOD.name}\{{.*\}} (\S+)$", re.MULTILINE)


class _Collector(Collector):
    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def collect(self) -> Iterator[Family]:
        values = self._monitor.values()
        for metric in METRICS:
            series = dict(values.get(metric, {}))
            if not series:
                continue
            if metric is DURATION:
                total = series.pop(SUM)
                buckets = [(bound, count) for (bound,), count in series.items()]
                yield HistogramMetricFamily(
                    metric.name, metric.help, buckets=buckets, sum_value=total
                )
                continue
            kind: type[CounterMetricFamily | GaugeMetricFamily] = GaugeMetricFamily
            if metric.kind == "counter":
                kind = CounterMetricFamily
            family = kind(metric.name, metric.help, labels=metric.labels)
            for labels, value in sorted(series.items()):
                family.add_metric(labels, value)
            yield family


def _registry(monitor: Monitor) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Collector(monitor))
    return registry


def text(monitor: Monitor) -> bytes:
    """Return the metrics for a scrape, with those of the process itself, such as its memory."""
    registry = _registry(monitor)
    ProcessCollector(registry=registry)
    return generate_latest(registry)


def write_file(monitor: Monitor, path: Path) -> None:
    """Write the metrics for the textfile collector of node_exporter. An error is only logged."""
    try:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        content = generate_latest(_registry(monitor))
        write_new(path, part, content, mode=0o644)  # node_exporter is another user
    except OSError as error:
        _log.warning("cannot write metrics to %s: %s", path, error.strerror or error)


def good_in_file(path: Path) -> float | None:
    """Return the time of the last good pass from the file that an earlier process wrote; None if it
    has none."""
    try:
        with open_regular(path) as file:
            written = file.read(_MOST_BYTES).decode()
        match = _EARLIER.search(written)
        if match is None:
            return None
        return float(match[1])
    except (OSError, ValueError):
        return None


def push(monitor: Monitor, url: str, group: dict[str, str]) -> None:
    """Push the metrics to a Pushgateway, where unknown ones keep their values. An error or a
    timeout is only logged."""

    def send() -> None:
        pushadd_to_gateway(
            url, "eurekube-sync", _registry(monitor), grouping_key=group, timeout=PUSH_SECONDS
        )

    try:
        # The timeout of `send` limits neither name resolution nor the answer as a whole.
        in_side_thread(send).result(PUSH_SECONDS)
    except Exception as error:  # noqa: BLE001 - urllib raises many types, and metrics must not end a pass
        why = str(error) or "no answer in time"
        _log.warning("cannot push metrics to %s: %s", url, why)
