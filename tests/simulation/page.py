"""The table of the defects, and the last long run, which docs/simulation.md shows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """How a defect was found."""

    defect: str
    about: str = ""
    """The subject of the stories; empty for any."""
    seeds: int
    """How many stories were played."""
    promise: str
    """The promise that was broken; empty if no story showed the defect."""
    seed: int = 0
    what: str = ""


PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


def table(caught: Iterable[Caught]) -> str:
    """The table of the defects, in Markdown."""
    rows = [
        f"| {one.defect} | {one.about or 'all'} | {one.seeds} | {one.promise or 'not caught'} |"
        for one in caught
    ]
    return "\n".join(
        ["| defect | about | stories | promise that it broke |", "|---|---|---|---|", *rows]
    )


_FIRST_STORIES = Path(__file__).with_name("caught.json")


def first_stories() -> dict[str, int]:
    """The seed of the story that showed a defect when all were last tried. Its test begins there,
    because some show only after hundreds of stories."""
    seeds: dict[str, int] = json.loads(_FIRST_STORIES.read_text())
    return seeds


def write_first_stories(caught: Iterable[Caught]) -> None:
    """Write these seeds for the next runs of the tests."""
    seeds = {one.defect: one.seed for one in caught if one.promise}
    _FIRST_STORIES.write_text(json.dumps(seeds, indent=0, sort_keys=True) + "\n")


RUN_BEGINS = "<!-- the last long run, written by the command that it names -->\n"
RUN_ENDS = "<!-- the end of the last long run -->"


def with_run(
    page: str, runs: int, first: int, jobs: int, shown: Iterable[str], *, about: str = ""
) -> str:
    """Gives the page with the output of this run between the marks."""
    head, _, rest = page.partition(RUN_BEGINS)
    kind = f' --about "{about}"' if about else ""
    command = (
        f"python -m tests.simulation{kind} --runs {runs} --seed {first} --jobs {jobs} --record"
    )
    lines = "\n".join([f"$ {command}", *shown])
    return f"{head}{RUN_BEGINS}```text\n{lines}\n```\n{RUN_ENDS}{rest.partition(RUN_ENDS)[2]}"
