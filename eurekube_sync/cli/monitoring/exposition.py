"""The metrics in Prometheus' format: in a file, pushed, and served over HTTP with health and a page
for people.

The page is plain HTML without scripts; all its text is escaped. Only this file imports the client
of Prometheus.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET, AF_INET6, SHUT_RDWR
from threading import Thread
from typing import Any, TypeAlias

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
    AT_RISK,
    DURATION,
    GOOD,
    HELD,
    INSTANCES,
    LAST_GOOD,
    METRICS,
    SUM,
    UNKNOWN,
    Monitor,
    Passed,
    is_ready,
)
from eurekube_sync.files import open_regular, write_new
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.kubernetes import SyncerRef, SyncerStatus
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.text import counted

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PUSH_SECONDS = 5.0
_MOST_BYTES = 32 * 1024 * 1024  # of our own file; 100 times the metrics of 1000 syncers
_SECONDS = 10  # after which a silent client is disconnected
_MOST_CLIENTS = 100  # at once; each takes a file descriptor, and renewals need these, too
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_Answer: TypeAlias = tuple[int, str, bytes]  # status, content type, body
_NOT_FOUND: _Answer = (404, _TEXT, b"there is /, /metrics, /livez and /readyz\n")
_Routes: TypeAlias = Mapping[str, Callable[[], _Answer]]
_log = logging.getLogger(__name__)
_EARLIER = re.compile(rf"^{LAST_GOOD.name}\{{.*\}} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class _Collector(Collector):
    monitor: Monitor

    def collect(self) -> Iterator[Family]:
        values = self.monitor.values()
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
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
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
            match = _EARLIER.search(file.read(_MOST_BYTES).decode())
        return float(match[1]) if match else None
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


@contextmanager
def serving(monitor: Monitor, host: str, port: int) -> Iterator[str]:
    """Serve in the background, and give the URL. Port 0 picks a free port. Raises
    ConfigurationError."""
    routes: _Routes = {
        "/": lambda: (200, _HTML, "".join(html_of(monitor)).encode()),
        "/metrics": lambda: (200, CONTENT_TYPE, text(monitor)),
        "/livez": lambda: _health(monitor.live, "passes have stopped"),
        "/readyz": lambda: _health(monitor.ready, "no pass has ended yet"),
    }
    try:
        server = _Server(host, port, routes)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--listen cannot open {host or '*'}:{port}: {why}") from error
    shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
    url = f"http://{shown}:{server.server_address[1]}"
    _log.info("listening on %s (/metrics, /livez, /readyz and a status page)", url)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


def _health(good: bool, why: str) -> _Answer:
    return (200, _TEXT, b"ok\n") if good else (503, _TEXT, f"{why}\n".encode())


class _Server(ThreadingHTTPServer):
    def __init__(self, host: str, port: int, routes: _Routes) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.routes = routes
        self._clients: deque[Any] = deque(maxlen=_MOST_CLIENTS)
        super().__init__((host, port), _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Disconnect the oldest of too many clients, so that a probe is always answered."""
        if len(self._clients) == _MOST_CLIENTS:
            with suppress(OSError):  # already disconnected
                self._clients[0].shutdown(SHUT_RDWR)
        self._clients.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        _log.debug("a client of --listen broke off", exc_info=True)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "eurekube-sync"
    sys_version = ""
    timeout = _SECONDS
    server: _Server

    def do_GET(self) -> None:
        route = self.server.routes.get(self.path.partition("?")[0])
        status, kind, body = route() if route else _NOT_FOUND
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
        """Log nothing: probes come every few seconds."""


KEPT_SYNCERS = 500  # the most that the page shows
_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:70rem}
h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}
p{margin:.3rem 0}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #8884}
td:first-child,td:last-child{overflow-wrap:anywhere}
td[data-name=Ended],td[data-name=Took]{white-space:nowrap}
dl{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:.6rem 0}
dt{font-size:.8rem;opacity:.75}dd{margin:0;font-size:1.3rem}
.bad{color:#c62828;font-weight:600}.quiet{opacity:.75}
@media (prefers-color-scheme:dark){.bad{color:#ff8a80}}
@media (max-width:40rem){thead{display:none}
tr{display:block;padding:.4rem 0;border-bottom:1px solid #8884}
td{display:block;border:0;padding:.05rem 0}td:empty{display:none}
td[data-name]:before{content:attr(data-name) ": ";opacity:.75}}
"""
_BAD = ' class="bad"'


def html_of(monitor: Monitor) -> Iterator[str]:
    """Return the parts of the page, which the browser loads again every 10 s."""
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield '<meta http-equiv="refresh" content="10">'
    yield f"<title>eurekube-sync {_escaped(monitor.owner)}</title>"
    yield f"<style>{_STYLE}</style></head><body>"
    yield f"<h1>eurekube-sync: {_escaped(monitor.owner)}</h1>"
    made = _time(monitor.clock.now())
    yield f'<p class="quiet">Scope: {_escaped(monitor.scope)}. {_escaped(monitor.lock)} Made {made}.</p>'
    if monitor.passes:
        last = monitor.passes[0]
        mark, how = _BAD, f"ended with {last.code.name} ({last.code:d})"
        if last.code in GOOD:
            mark, how = "", "was good"
        yield f"<p{mark}>The last pass {how}: {_escaped(last.summary)}</p>"
    else:
        yield "<p>No pass has ended yet in this process.</p>"
    if monitor.hold is not None:
        yield f"<p{_BAD}>{_escaped(monitor.hold.sentence)}</p>"
    yield from _counts(monitor)
    yield "<h2>Syncers</h2>"
    if monitor.syncers:
        yield from _table(
            ("Syncer", "App", "Ready", "Reason", "Message"),
            map(_syncer, monitor.syncers[:KEPT_SYNCERS]),
        )
    else:
        yield "<p>None is known.</p>"
    left = len(monitor.syncers) - KEPT_SYNCERS
    if left > 0:
        yield f"<p>{counted(left, 'syncer')} more; those that are not ready come first.</p>"
    yield "<h2>Last passes</h2>"
    yield from _table(("Ended", "Took", "Result", "Summary"), map(_pass, monitor.passes))
    yield '<p class="quiet"><a href="/metrics">Metrics</a></p></body></html>'


def _counts(monitor: Monitor) -> Iterator[str]:
    values = monitor.values()
    statuses: Counter[str] = Counter()
    for (_, status), number in values.get(INSTANCES, {}).items():
        statuses[status] += int(number)
    yield "<dl>"
    for status, total in sorted(statuses.items(), reverse=True):
        if total:
            yield _count(f"instances {status}", total, "" if status == "UP" else _BAD)
    for metric, name in _TROUBLES.items():
        for labels, number in sorted(values.get(metric, {}).items()):
            if number:
                yield _count(name.format(*labels), int(number), _BAD)
    yield "</dl>"


_TROUBLES = {
    HELD: "removals held: {}",
    AT_RISK: "leases at risk",
    UNKNOWN: "sources of {} not read",
}
"""Metrics that are bad unless they are 0, with a name that has their label."""


def _count(name: str, number: int, mark: str) -> str:
    return f"<div><dt>{_escaped(name)}</dt><dd{mark}>{number}</dd></div>"


_Row: TypeAlias = tuple[tuple[str, ...], bool]  # the cells, and whether it is bad


def _syncer(item: tuple[SyncerRef, SyncerStatus]) -> _Row:
    ref, status = item
    ready = status.condition("Ready")
    reason, message = (ready.reason, ready.message) if ready else ("", "")
    app = status.app_name or ", ".join(status.apps)
    return (str(ref), app, status.ready, reason, message), not is_ready(status)


def _pass(last: Passed) -> _Row:
    cells = (_time(last.at), f"{last.seconds:.1f} s", last.code.name, last.summary)
    return cells, last.code not in GOOD


def _table(names: tuple[str, ...], rows: Iterable[_Row]) -> Iterator[str]:
    yield "<table><thead><tr>"
    for name in names:
        yield f'<th scope="col">{name}</th>'
    yield "</tr></thead><tbody>"
    for texts, bad in rows:
        yield f"<tr{_BAD if bad else ''}>"
        for name, text in zip(names, texts, strict=True):
            yield f'<td data-name="{name}">{_escaped(text)}</td>'
        yield "</tr>"
    yield "</tbody></table>"


def _escaped(text: str) -> str:
    return escape(printable(text))


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
