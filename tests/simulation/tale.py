"""Tells a story with times, so that a person can see how it came to its end."""

from __future__ import annotations

from collections.abc import Iterator

from .run import Verdict, run

_LAST_CALLS = 12
_WENT_WELL = (": 200", ": 201", ": 204")


def tell(verdict: Verdict, *, whole: bool = False) -> str:
    """Plays the story of the verdict once more and tells who runs, the events, the calls that
    changed something or failed, the last calls, and the end. Reads and renewals that went well are
    only counted, unless the `whole` is asked for."""
    story = verdict.story
    again = verdict if verdict.tale else run(story, telling=True)
    lines = [
        f"Seed {story.seed}: {story.installation}; all troubles are over at {story.ends:.0f} s."
    ]
    lines += [f"  from {trouble.at:.0f} s {trouble}" for trouble in story.troubles]
    lines += _told(again, len(again.tale) if whole else _LAST_CALLS)
    lines.append(
        f"  {again.seconds:9.3f}  "
        f"{again.promise or 'every promise was kept'}{': ' if again.what else ''}{again.what}"
    )
    return "\n".join(lines)


def _told(verdict: Verdict, last: int) -> Iterator[str]:
    left_out = 0
    for number, (when, what) in enumerate(verdict.tale):
        if _dull(what) and number < len(verdict.tale) - last:
            left_out += 1
            continue
        if left_out:
            yield f"             ({left_out} reads and renewals that went well)"
            left_out = 0
        yield f"  {when:9.3f}  {what}"


def _dull(what: str) -> bool:
    return ((": GET " in what or ": PUT " in what) and what.endswith(_WENT_WELL)) and " -> " in what
