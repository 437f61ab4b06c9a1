"""The metrics in Prometheus' own format: as a file, pushed, and served to whoever may reach the address, with health
and the page. The one file that imports the client of Prometheus."""

from __future__ import annotations

import logging
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET6, SHUT_RDWR
from threading import Thread
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest, pushadd_to_gateway
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.cli.monitoring.metrics import DURATION, LAST_GOOD, METRICS, SUM, Monitor
from eurekube_sync.cli.monitoring.page import html_of
from eurekube_sync.files import open_regular, write_new
from eurekube_sync.model.errors import ConfigurationError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PUSH_SECONDS = 5.0
_MOST_BYTES = 32 * 1024 * 1024  # of our own file: 100 times what 1000 syncers take
_SECONDS = 10  # how long a client may be silent
_MOST = 100  # clients at once. Each takes a file descriptor, and without one no lease can be renewed
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_Answer: TypeAlias = tuple[int, str, bytes]
_log = logging.getLogger(__name__)
_EARLIER = re.compile(rf"^{LAST_GOOD.name}\{{.*\}} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class _Collector(Collector):
    monitor: Monitor

    def collect(self) -> Iterator[Family]:
        values = self.monitor.values()
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


@contextmanager
def serving(monitor: Monitor, host: str, port: int) -> Iterator[str]:
    """Serves in the background, and gives the URL; port 0 picks a free one. Raises ConfigurationError."""
    routes: dict[str, Callable[[], _Answer]] = {
        "/": lambda: (200, _HTML, html_of(monitor).encode()),
        "/metrics": lambda: (200, CONTENT_TYPE, text(monitor)),
        "/livez": lambda: _health(monitor.live, "passes have stopped"),
        "/readyz": lambda: _health(monitor.ready, "no pass has ended yet"),
    }
    connection = type("Connection", (_Connection,), {"routes": routes})
    family = {"address_family": AF_INET6} if ":" in host else {}
    try:
        server = type("Server", (_Server,), family)((host, port), connection)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--listen cannot open {host or '*'}:{port}: {why}") from error
    shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
    url = f"http://{shown}:{server.server_address[1]}"
    _log.info("listening on %s: /metrics, /livez, /readyz and a page", url)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


def _health(good: bool, why: str) -> _Answer:
    return (200, _TEXT, b"ok\n") if good else (503, _TEXT, f"{why}\n".encode())


class _Server(ThreadingHTTPServer):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._clients: deque[Any] = deque(maxlen=_MOST)

    def process_request(self, request: Any, client_address: Any) -> None:
        """The oldest client makes room, so that a probe is answered whoever else holds on."""
        if len(self._clients) == _MOST:
            with suppress(OSError):  # it has hung up
                self._clients[0].shutdown(SHUT_RDWR)
        self._clients.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is nobody's concern."""
        _log.debug("a client of --listen broke off", exc_info=True)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "eurekube-sync"
    sys_version = ""
    timeout = _SECONDS
    routes: dict[str, Callable[[], _Answer]]

    def do_GET(self) -> None:
        route = self.routes.get(self.path.partition("?")[0])
        status, kind, body = route() if route else (404, _TEXT, b"there is /, /metrics, /livez and /readyz\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """A probe each few seconds is no news."""
