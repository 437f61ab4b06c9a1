"""Makes docs/compatibility.md from what the matrix of the tests found: `python -m
docs.compatibility_page` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from tests.contract.otherwise import LINES as OTHERWISE
from tests.contract.otherwise import Otherwise
from tests.servers import pythons
from tests.servers.eureka_lines import LINES, NEWEST
from tests.servers.go_builds import ETCD_VERSION, KUBERNETES_RELEASES

PAGE = Path(__file__).parent / "compatibility.md"
RESULT = PAGE.with_suffix(".json")
_WIDTH = 120
NETFLIX_RELEASE = "1.10.18, without Spring"
_NONE = "—"

_HEAD = """\
# Compatibility

<!-- Made by `python -m docs.compatibility_page` from compatibility.json, which `tox -e compatibility` writes -->
"""
_EUREKA = """\
## Eureka

The contract tests call the server directly and check what this program relies on. The story is a syncer's life between
this Eureka and a real Kubernetes: pods are registered, renewed, set DOWN and cancelled, and the syncer is deleted. In a
pair, the server and one of {newest} replicate to each other; the older one dies and comes back empty. Each number is
that of the tests that passed; none failed.
"""
_OTHERWISE = """\
### What older servers do differently

Each row is tested on the lines that it names, and the opposite on the others.
"""
_KUBERNETES = """\
## Kubernetes

All run on etcd {etcd}. The contract tests check the API, the CRD with its rules, and the lock.
"""
_NOT_HERE = """\
## What is not tested

| what | why |
|---|---|
| Java 8, on which the lines up to 2021.0 run as well | no package registry that the tests use has it; the tests run these lines on Java {java}, with the packages opened that Java 9 closed |
| the war of Netflix's own server | it is in no registry; the tests start the same classes in a Tomcat, without the pages for people |
| login and TLS with older lines | each needs another configuration of Spring Security; the tests use that of {newest} |
| Finchley, 2022.0, 2024.0 | the lines before and after them are tested |
| calls at an `ExternalName` | it is registered as it stands, and leads to a server outside of the cluster; `tests/datapath` has calls at every other kind of address |
| calls by TLS through an Ingress or a Gateway | its proxy answers them, as it answers the plain calls of `tests/datapath`; `tests/readers` has what callers make of a secure port |
| later releases of 2025.0 | the registry lacks some of their files |
| Kubernetes between these releases, and later patches of 1.32 | a release takes minutes to build; the registry lacks some modules of the later patches |

## Python and packages

The unit tests run on these: the newest in `tox -m wide`, the others in plain `tox`.

| Python | packages | environment |
|---|---|---|
| 3.11 | the lowest that `pyproject.toml` allows | `coverage` |
| {image}, the image's | `constraints.lock` | `unit-image` |
| {newest_python} | the newest | `unit-newest` |
"""


def needs() -> Mapping[str, str]:
    """What README's "What you need" says of each server."""
    releases = list(KUBERNETES_RELEASES)
    lines = [line.name for line in LINES.values() if line.cloud]
    return {
        "Kubernetes": f"{releases[0]} or newer, for the CRD's rules; [tested]"
        f"(docs/compatibility.md) with {', '.join(releases[:-1])} and {releases[-1]}",
        "Eureka": "any server with Eureka's REST API; [tested](docs/compatibility.md) with Spring "
        f"Cloud {', '.join(lines[:-1])} and {lines[-1]}, and with Netflix's own 1.10",
    }


def page() -> str:
    """The whole page."""
    result = json.loads(RESULT.read_text())
    machine = result["machine"]
    texts = [
        _HEAD,
        _where(machine, result["rows"]),
        _EUREKA.format(newest=NEWEST.name),
        *_eureka(result["rows"]),
        _OTHERWISE,
        *_otherwise(),
        _KUBERNETES.format(etcd=ETCD_VERSION),
        *_kubernetes(result["rows"]),
        _NOT_HERE.format(
            newest=NEWEST.name,
            java=machine["java"],
            image=pythons.IMAGE,
            newest_python=pythons.NEWEST,
        ),
    ]
    return "\n".join(texts)


def _where(machine: Mapping[str, Any], rows: Mapping[str, Any]) -> str:
    days = sorted({row["at"] for row in rows.values()})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    text = (
        f"The program was tested with these servers on {when}, with Python {machine['python']} and "
        f"Java {machine['java']}, on {machine['cores']} cores of {machine['processor']}. "
        "The machine did other work at the same time. `tox -e compatibility` runs all of it again. `tox -m wide` runs a part: the oldest line of "
        "Spring Cloud, Netflix's own server, and the oldest Kubernetes."
    )
    return f"{fill(text, _WIDTH)}\n"


def _eureka(rows: Mapping[str, Any]) -> Iterator[str]:
    yield "| line | release | contract | story | pair | seconds |"
    yield "|---|---|---|---|---|---|"
    for line in LINES.values():
        row = rows[f"Eureka {line.name}"]
        release = f"{line.cloud}, Spring Boot {line.boot}" if line.cloud else NETFLIX_RELEASE
        cells = [_passed(row, part) for part in ("contract", "story", "pair")]
        yield f"| {line.name} | {release} | {' | '.join(cells)} | {row['seconds']} |"
    yield ""


def _otherwise() -> Iterator[str]:
    yield "| what | lines | why the program works |"
    yield "|---|---|---|"
    for difference in Otherwise:
        names = [line for line, found in OTHERWISE.items() if difference in found]
        yield f"| {difference.what} | {', '.join(names)} | {difference.why_it_works} |"
    yield ""


def _kubernetes(rows: Mapping[str, Any]) -> Iterator[str]:
    yield "| release | version | contract | story | seconds |"
    yield "|---|---|---|---|---|"
    for name, release in KUBERNETES_RELEASES.items():
        row = rows[f"Kubernetes {name}"]
        cells = [_passed(row, part) for part in ("contract", "story")]
        yield f"| {name} | {release.version} | {' | '.join(cells)} | {row['seconds']} |"
    yield ""


def _passed(row: Mapping[str, Any], part: str) -> str:
    found = row["parts"].get(part)
    return _NONE if found is None else str(found["passed"])


if __name__ == "__main__":
    PAGE.write_text(page())
