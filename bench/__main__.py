"""`python -m bench`: what the program costs at 600, 10,000 and 60,000 instances, beside a floor and a plain loop."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.measure import Measuring, Row
from bench.servers import embedded, real


def main(arguments: list[str]) -> int:
    """Prints a table; writes JSON, a plot and the page where it is asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--sizes", default="600,10000,60000", help="instances, with commas (default: %(default)s)")
    parser.add_argument("--embedded", action="store_true", help="against the embedded servers, for development")
    parser.add_argument("--rounds", type=int, default=3, help="of the steady one-shot (default: %(default)s)")
    parser.add_argument("--no-loop", action="store_true", help="without the plain loop, which takes minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("extra", nargs="*", help="options for the program, after --")
    options = parser.parse_args(arguments)
    rows: dict[int, list[Row]] = {}
    for size in (int(part) for part in options.sizes.split(",")):
        with (embedded if options.embedded else real)(size) as servers:

            def say(what: str, size: int = size) -> None:
                print(f"{size}: {what}", file=sys.stderr, flush=True)

            measuring = Measuring(
                servers, rounds=options.rounds, loop=not options.no_loop, extra=options.extra, say=say
            )
            for row in measuring.rows():
                rows.setdefault(size, []).append(row)
                print(size, row, flush=True)
    if options.json:
        options.json.write_text(
            json.dumps({size: [asdict(row) for row in found] for size, found in rows.items()}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
