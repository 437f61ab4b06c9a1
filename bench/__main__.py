"""`python -m bench`: what the program costs at 600, 1,000, 10,000 and 60,000 instances, beside a
floor and a loop."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.measure import Measuring
from bench.report import as_json, into_page, show, svg, with_earlier
from bench.row import PROGRAM, Row
from bench.servers import embedded, real

_PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_PLOT = _PAGE.with_suffix(".svg")
_FIGURES = _PAGE.with_suffix(".json")
_LOOP_UP_TO = 10_000
"""Instances; the plain loop takes minutes for more."""


def main(arguments: list[str]) -> int:
    """Prints a table; writes JSON, the page and its plot where it is asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--sizes",
        default="600,1000,10000,60000",
        help="instances, with commas (default: %(default)s)",
    )
    parser.add_argument(
        "--embedded", action="store_true", help="against the embedded servers, for development"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="of the steady one-shot (default: %(default)s)"
    )
    parser.add_argument(
        "--no-loop",
        action="store_true",
        help=f"never the plain loop (above {_LOOP_UP_TO:,}: never)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"write docs/{_PAGE.name} after each size; it keeps other sizes that this machine "
        "recorded before",
    )
    parser.add_argument("extra", nargs="*", help="options for the program, after --")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all servers are ended
    sizes = [int(part) for part in options.sizes.split(",")]
    found: dict[int, list[Row]] = {}
    try:
        for size in sizes:
            found[size] = []
            for row in _measured(size, options):
                found[size].append(row)
            if options.record:
                _record(found)
    finally:  # also what an interrupted run has found
        if options.json:
            options.json.write_text(as_json(found))
        show(found)
    return int(any(row.failed for rows in found.values() for row in rows))


def _measured(size: int, options: argparse.Namespace) -> Iterator[Row]:
    """Each row as soon as it is there; says on stderr what begins."""

    def say(what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {size:,}: {what}", file=sys.stderr, flush=True)

    with (embedded if options.embedded else real)(size) as servers:
        measuring = Measuring(
            servers,
            rounds=options.rounds,
            loop=size <= _LOOP_UP_TO and not options.no_loop,
            extra=options.extra,
            say=say,
        )
        try:
            yield from measuring.rows()
        except Exception as error:  # noqa: BLE001 - the other sizes tell something
            yield Row(scenario="writing the objects", program=PROGRAM, failed=f"{error!r:.120}")


def _record(found: Mapping[int, Sequence[Row]]) -> None:
    recorded = with_earlier(found, _FIGURES)
    _FIGURES.write_text(as_json(recorded))
    _PLOT.write_text(svg(recorded))
    into_page(_PAGE, recorded, _PLOT.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
