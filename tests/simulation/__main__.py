"""`python -m tests.simulation`: any number of stories, the failing ones made small and told."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from .chance import story, subjects
from .defects import catch, defects
from .page import PAGE, Caught, table, with_run, write_first_stories
from .run import Verdict, run
from .shrink import shrink
from .tale import tell

_TOLD = 3
"""How many failing stories are made small and told; the seeds of all are printed."""


def main(arguments: list[str]) -> int:
    """Returns 0 if every promise was kept in every story."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="how many stories (default 1000)")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="the first story's seed (default 0); each next one is one more",
    )
    parser.add_argument(
        "--about", default="", choices=subjects(), metavar="KIND", help="stories of this kind alone"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="processes (default: one for each core)",
    )
    parser.add_argument(
        "--tell", action="store_true", help="tell the story of --seed, whole, and how it ends"
    )
    parser.add_argument(
        "--defects",
        action="store_true",
        help="make the product wrong on purpose, and print the table",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="write what a run printed into its page; with --defects, the story that showed each",
    )
    parser.add_argument(
        "--digests",
        type=Path,
        metavar="FILE",
        help="write, a line a story, a digest of all its calls",
    )
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="compare with digests written before"
    )
    options = parser.parse_args(arguments)
    if options.defects:
        return _show_defects(options.seed, options.runs, options.jobs, record=options.record)
    if options.digests or options.against:
        return _digests(options.seed, options.runs, options.jobs, options.digests, options.against)
    if options.tell:
        verdict = run(story(options.seed, options.about), telling=True)
        print(tell(verdict, whole=True))
        return 0 if verdict.kept else 1
    return _run_many(
        options.seed, options.runs, options.jobs, about=options.about, record=options.record
    )


def _run_many(first: int, runs: int, jobs: int, *, about: str, record: bool) -> int:
    begun = time.monotonic()
    broken: list[Verdict] = []
    passes = calls = 0
    reached: Counter[str] = Counter()
    virtual = 0.0
    for done, verdict in enumerate(verdicts(range(first, first + runs), jobs, about), start=1):
        passes, calls, virtual = (
            passes + verdict.passes,
            calls + verdict.calls,
            virtual + verdict.seconds,
        )
        reached.update(verdict.reached)
        if not verdict.kept:
            broken.append(verdict)
            print(f"seed {verdict.story.seed}: {verdict.promise}: {verdict.what}")
        if done % (100 if sys.stderr.isatty() else 500) == 0:
            end = "\r" if sys.stderr.isatty() else "\n"
            text = f"{done} of {runs} stories, {passes:,} passes, {len(broken)} broke a promise"
            print(text, end=end, file=sys.stderr, flush=True)
    took = time.monotonic() - begun
    kind = f' about "{about}"' if about else ""
    summary = (
        f"{runs} stories{kind} from seed {first}: {passes} passes, {calls} calls, "
        f"{virtual / 3600:.0f} virtual hours "
        f"in {took:.0f} s ({1000 * took * jobs / max(runs, 1):.0f} ms a story and core); "
        f"{len(broken)} broke a promise"
    )
    print(summary)
    print(f"reached: {', '.join(f'{count} {what}' for what, count in sorted(reached.items()))}")
    if record:
        PAGE.write_text(with_run(PAGE.read_text(), runs, first, jobs, [summary], about=about))
    for verdict in broken[:_TOLD]:
        print()
        print(tell(shrink(verdict)))
        kind = f' --about "{about}"' if about else ""
        print(f"again: python -m tests.simulation --seed {verdict.story.seed}{kind} --tell")
    return 1 if broken else 0


def _digests(first: int, runs: int, jobs: int, into: Path | None, against: Path | None) -> int:
    """Prints a digest of every call of every story with its virtual time, to compare before and
    after a change."""
    made = {
        verdict.story.seed: verdict.digest for verdict in verdicts(range(first, first + runs), jobs)
    }
    if into:
        into.write_text("".join(f"{seed} {digest}\n" for seed, digest in made.items()))
    if not against:
        return 0
    before = dict(line.split() for line in against.read_text().splitlines())
    differ = [seed for seed, digest in made.items() if before.get(str(seed), digest) != digest]
    compared = len(made.keys() & {int(seed) for seed in before})
    print(
        f"{compared} stories compared, {len(differ)} "
        f"differ{': ' if differ else ''}{', '.join(map(str, differ))}"
    )
    return 1 if differ or not compared else 0


def _show_defects(first: int, most: int, jobs: int, *, record: bool) -> int:
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        tries = [(number, first, most) for number in range(len(defects()))]
        caught = pool.starmap(_catch, tries, chunksize=1)
    print(table(caught))
    if record:
        write_first_stories(caught)
    return 0 if all(one.promise for one in caught) else 1


def _catch(number: int, first: int, most: int) -> Caught:
    return catch(defects()[number], first=first, most=most)


def verdicts(seeds: Iterable[int], jobs: int, about: str = "") -> Iterator[Verdict]:
    """Yields the verdict of each seed's story, in order; `about` as for `chance.story`."""
    play = partial(_of_seed, about=about)
    if jobs <= 1:
        yield from map(play, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap(play, seeds, chunksize=8)


def _of_seed(seed: int, *, about: str) -> Verdict:
    return run(story(seed, about))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
