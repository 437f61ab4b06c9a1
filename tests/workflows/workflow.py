"""The workflows as data: their jobs, and the shell steps of each with the values of their
expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
Json = dict[str, Any]
_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job of a workflow. `matrix` has the values of this run of it."""

    name: str
    content: Json
    matrix: Mapping[str, str]

    @property
    def steps(self) -> list[Json]:
        """Its steps; those of a job that calls another workflow are there."""
        steps: list[Json] = self.content.get("steps", [])
        return steps


def tox_environments() -> list[str]:
    """Return those of plain `tox`, and those of `tox -m wide`."""
    read = ConfigParser()
    read.read(ROOT / "tox.ini")
    name, _, wide = read["tox"]["labels"].strip().partition(" = ")
    assert name == "wide"
    named = [*read["tox"]["env_list"].split(","), *wide.split(",")]
    return [environment.strip() for environment in named]


def workflow(name: str) -> Json:
    """Return what the file says."""
    content: Json = yaml.safe_load((FOLDER / name).read_text())
    return content


def jobs(name: str) -> Iterator[Job]:
    """Yield each job as often as its matrix says, after those that it needs."""
    remaining: Json = dict(workflow(name)["jobs"])
    done: set[str] = set()
    while remaining:
        ready = [job for job in remaining if set(_needs(remaining[job])) <= done]
        assert ready, f"these jobs wait for each other: {list(remaining)}"
        for job in ready:
            content = remaining.pop(job)
            done.add(job)
            for matrix in _matrix(content):
                yield Job(name=job, content=content, matrix=matrix)


def _needs(job: Json) -> list[str]:
    named = job.get("needs", [])
    return [named] if isinstance(named, str) else named


def _matrix(job: Json) -> list[dict[str, str]]:
    """One variable at most, as ours have."""
    variables: dict[str, list[str]] = job.get("strategy", {}).get("matrix", {})
    if not variables:
        return [{}]
    ((name, values),) = variables.items()
    return [{name: value} for value in values]


def filled(text: str, context: Mapping[str, Any]) -> str:
    """Return a text with the value of each `${{ a.b.c }}`. KeyError for a name that nothing sets,
    which GitHub itself would read as empty."""

    def value(expression: re.Match[str]) -> str:
        found: Any = context
        for name in expression[1].split("."):
            found = found[name]
        return str(found)

    return _EXPRESSION.sub(value, text)
