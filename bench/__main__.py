"""`python -m bench`: what the program costs at 600, 1,000, 10,000 and 60,000 instances, beside a floor and a loop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.measure import Measuring, Row
from bench.report import as_json, into_page, show, svg
from bench.servers import embedded, real

_PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_PLOT = "performance.svg"


def main(arguments: list[str]) -> int:
    """Prints a table; writes JSON, the page and its plot where it is asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--sizes", default="600,1000,10000,60000", help="instances, with commas (default: %(default)s)")
    parser.add_argument("--embedded", action="store_true", help="against the embedded servers, for development")
    parser.add_argument("--rounds", type=int, default=3, help="of the steady one-shot (default: %(default)s)")
    parser.add_argument("--no-loop", action="store_true", help="without the plain loop, which takes minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--record", action="store_true", help=f"write the table and the plot into docs/{_PAGE.name}")
    parser.add_argument("extra", nargs="*", help="options for the program, after --")
    options = parser.parse_args(arguments)
    sizes = [int(part) for part in options.sizes.split(",")]
    found: dict[int, list[Row]] = {}
    notes: list[str] = []
    for size in sizes:
        shards = (2, 4) if size == max(sizes) and size >= 10_000 else ()
        with (embedded if options.embedded else real)(size) as servers:
            measuring = Measuring(
                servers,
                rounds=options.rounds,
                loop=not options.no_loop,
                shards=shards,
                extra=options.extra,
                say=lambda what, size=size: print(f"{size}: {what}", file=sys.stderr, flush=True),  # type: ignore[misc]
            )
            found[size] = list(measuring.rows())
            notes += measuring.notes
        if options.json:
            options.json.write_text(as_json(found, notes))
    show(found, notes)
    if options.record:
        (_PAGE.parent / _PLOT).write_text(svg(found))
        into_page(_PAGE, found, notes, _PLOT)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
