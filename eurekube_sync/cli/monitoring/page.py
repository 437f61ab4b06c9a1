"""The page for people: plain HTML without scripts, from what a `Monitor` remembers. Every text is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape

from eurekube_sync.cli.monitoring.metrics import AT_RISK, GOOD, HELD, INSTANCES, UNKNOWN, Monitor, Passed, is_ready
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.kubernetes import SyncerRef, SyncerStatus
from eurekube_sync.model.wording import counted

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
@media (max-width:40rem){thead{display:none}tr{display:block;padding:.4rem 0;border-bottom:1px solid #8884}
td{display:block;border:0;padding:.05rem 0}td:empty{display:none}
td[data-name]:before{content:attr(data-name) ": ";opacity:.75}}
"""
_BAD = ' class="bad"'


def html_of(monitor: Monitor) -> str:
    """The whole page; it asks the browser to load it again each 10 s."""
    return "".join(_parts(monitor))


def _parts(monitor: Monitor) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1"><meta http-equiv="refresh" content="10">'
    yield f"<title>eurekube-sync {_text(monitor.owner)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>eurekube-sync: {_text(monitor.owner)}</h1>"
    made = _time(monitor.clock.now())
    yield f'<p class="quiet">Scope: {_text(monitor.scope)}. {_text(monitor.lock)} Made {made}.</p>'
    if monitor.passes:
        last = monitor.passes[0]
        how = "was good" if last.code in GOOD else f"ended with {last.code.name} ({last.code:d})"
        yield f"<p{'' if last.code in GOOD else _BAD}>The last pass {how}: {_text(last.summary)}</p>"
    else:
        yield "<p>No pass has ended yet in this process.</p>"
    yield from _counts(monitor)
    yield "<h2>Syncers</h2>"
    if monitor.syncers:
        yield from _table(("Syncer", "App", "Ready", "Reason", "Message"), map(_syncer, monitor.syncers[:KEPT_SYNCERS]))
    else:
        yield "<p>None is known.</p>"
    if (left := len(monitor.syncers) - KEPT_SYNCERS) > 0:
        yield f"<p>{counted(left, 'syncer')} more; those that are not ready come first.</p>"
    yield "<h2>Last passes</h2>"
    yield from _table(("Ended", "Took", "Result", "Summary"), map(_pass, monitor.passes))
    yield '<p class="quiet"><a href="/metrics">Metrics</a></p></body></html>'


def _counts(monitor: Monitor) -> Iterator[str]:
    states: Counter[str] = Counter()
    values = monitor.values()
    for (_, state), number in values.get(INSTANCES, {}).items():
        states[state] += int(number)
    found = [(f"instances {state}", number, state != "UP") for state, number in sorted(states.items(), reverse=True)]
    for metric, what in ((HELD, "removals held: {}"), (AT_RISK, "leases at risk"), (UNKNOWN, "sources of {} not read")):
        some = sorted(values.get(metric, {}).items())
        found += [(what.format(*labels), int(number), True) for labels, number in some if number]
    yield "<dl>"
    for name, number, bad in found:
        yield f"<div><dt>{_text(name)}</dt><dd{' class=bad' if bad else ''}>{number}</dd></div>"
    yield "</dl>"


def _syncer(one: tuple[SyncerRef, SyncerStatus]) -> tuple[tuple[str, ...], bool]:
    ref, status = one
    ready = status.condition("Ready")
    why = (ready.reason, ready.message) if ready else ("", "")
    return (str(ref), status.app_name or ", ".join(status.apps), status.ready, *why), not is_ready(status)


def _pass(one: Passed) -> tuple[tuple[str, ...], bool]:
    return (_time(one.at), f"{one.seconds:.1f} s", one.code.name, one.summary), one.code not in GOOD


def _table(names: tuple[str, ...], rows: Iterable[tuple[tuple[str, ...], bool]]) -> Iterator[str]:
    yield "<table><thead><tr>" + "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr></thead><tbody>"
    for texts, bad in rows:
        cells = (f'<td data-name="{name}">{_text(text)}</td>' for name, text in zip(names, texts, strict=True))
        yield f"<tr{_BAD if bad else ''}>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def _text(of_others: str) -> str:
    return escape(printable(of_others))


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
