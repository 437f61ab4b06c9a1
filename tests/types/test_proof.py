"""The type checker refuses code that would remove something on the word of a source that was not
read whole.

Runs in `tox -e lint`, where mypy is.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
_PREAMBLE = """\
from eurekube_sync.desired.catalog import Catalog
from eurekube_sync.desired.claims import Deleting, Desired, Serving
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.actions import Cancel, Grounds, Update
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Complete, Proof, Source, Unknown
from eurekube_sync.observe.eureka import observe
from eurekube_sync.plan.make import make_plan

def cancel(key: InstanceKey, ref: SyncerRef, proof: Proof) -> Cancel:
    return Cancel(key=key, syncer=ref, why="", grounds=Grounds.ABSENCE, proof=proof, was=None)
"""
_RIGHT = """
def judged(source: Source[bool], key: InstanceKey, ref: SyncerRef) -> Cancel | None:
    return cancel(key, ref, source.proof) if isinstance(source, Complete) else None
"""
_WRONG = {
    "an Unknown has no proof": (
        "def wrong(source: Unknown, key: InstanceKey, ref: SyncerRef) -> Cancel:\n"
        "    return cancel(key, ref, source.proof)",
        "attr-defined",
    ),
    "a source that was not asked which it is": (
        "def wrong(source: Source[bool], key: InstanceKey, ref: SyncerRef) -> Cancel:\n"
        "    return cancel(key, ref, source.proof)",
        "union-attr",
    ),
    "a proof made of an Unknown": (
        "def wrong(source: Unknown) -> Proof:\n    return Proof(source)",
        "arg-type",
    ),
    "a proof made of nothing": ("def wrong() -> Proof:\n    return Proof()", "call-arg"),
    "an Unknown in a proof's place": (
        "def wrong(source: Unknown, key: InstanceKey, ref: SyncerRef) -> Cancel:\n    return "
        "cancel(key, ref, source)",
        "arg-type",
    ),
    "a cancel without one": (
        "def wrong(key: InstanceKey, ref: SyncerRef) -> Cancel:\n"
        '    return Cancel(key=key, syncer=ref, why="", grounds=Grounds.ABSENCE, was=None)',
        "call-arg",
    ),
    "UP to DOWN without one": (
        "def wrong(down: Instance, ref: SyncerRef) -> Update:\n"
        '    return Update(instance=down, syncer=ref, why="", changes=(), was=InstanceStatus.UP, stored_timestamp=1)',
        "call-arg",
    ),
    "a claim that leaves everything out": (
        "def wrong(syncer: SyncerObject, spec: Syncer) -> Serving:\n"
        "    return Serving(syncer=syncer, spec=spec)",
        "call-arg",
    ),
    "a deletion that is perhaps nobody's": (
        "def wrong(syncer: SyncerObject, crd_live: Source[bool]) -> Deleting:\n"
        "    return Deleting(syncer=syncer, spec=None, proof=crd_live.proof)",
        "union-attr",
    ),
    "a plan from a registry that could not be read": (
        "def wrong(desired: Desired, registry: Source[tuple[ObservedInstance, ...]], ownership: "
        "Ownership) -> object:\n"
        "    return make_plan(desired, observe(registry, ownership, Scope(), asked=0))",
        "arg-type",
    ),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The codes of mypy's errors in each snippet; all are checked in one go."""
    folder = tmp_path_factory.mktemp("snippets")
    snippets = {"right": _RIGHT, **{name: code for name, (code, _) in _WRONG.items()}}
    files = {name: folder / f"snippet_{number}.py" for number, name in enumerate(snippets)}
    for name, code in snippets.items():
        files[name].write_text(f"{_PREAMBLE}\n{code}\n")
    settings = f"--config-file={ROOT / 'pyproject.toml'}"
    out, trouble, _ = api.run([settings, "--no-pretty", *map(str, files.values())])
    assert not trouble, trouble
    found: dict[str, list[str]] = {name: [] for name in snippets}
    for file, code in re.findall(r"^(.+?):\d+: error: .* \[([a-z-]+)\]$", out, re.MULTILINE):
        found[next(name for name, path in files.items() if path.name == Path(file).name)].append(
            code
        )
    return found


@pytest.mark.parametrize("name", _WRONG)
def test_the_type_checker_refuses_each_wrong_example(
    name: str, errors: dict[str, list[str]]
) -> None:
    """Each of these, for the reason meant and no other."""
    assert errors[name] == [_WRONG[name][1]]


def test_the_type_checker_takes_what_asks_first(errors: dict[str, list[str]]) -> None:
    """A source that was asked whether it is Complete gives its proof."""
    assert errors["right"] == []
