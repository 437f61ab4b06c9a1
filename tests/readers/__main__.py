"""`python -m tests.readers`: how long each reader takes to follow a change, with the caches and
intervals that it and Eureka have by themselves. One round takes five minutes.

It ends with 1 if a reader finds something else than the table of cases says, or does not follow.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.servers.cache import BuildError
from tests.servers.eureka import EurekaServer
from tests.servers.process import ServerError

from .page import into_page, tables
from .story import play, troubles


def main() -> int:
    """Play the story; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.readers", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=3, help="the longest of so many counts (default: 3)"
    )
    parser.add_argument("--record", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    try:
        with TemporaryDirectory() as folder, EurekaServer(stock_timings=True) as eureka:
            found = play(eureka, Path(folder), fast=False, rounds=options.rounds)
    except (BuildError, ServerError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    text = tables(found, options.rounds)
    sys.stdout.write(text)
    differs = troubles(found)
    for trouble in differs:
        sys.stderr.write(f"{trouble}\n")
    if options.record and not differs:
        into_page(text)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
