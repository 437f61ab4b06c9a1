"""The bill of materials that `tox -e sbom` wrote, against the locks and the licences that are
allowed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = frozenset(
    {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "PSF-2.0", "Python-2.0"}
    | {
        f"License :: OSI Approved :: {name}"
        for name in (
            "Apache Software License",
            "BSD License",
            "Mozilla Public License 2.0 (MPL 2.0)",
        )
    }
)
"""All may be used in a product under Apache-2.0, unchanged. Whoever adds one here has read it."""
_PIN = re.compile(
    r"^([A-Za-z0-9._-]+)==([^\s;\\]+)[^\n]*\n((?: +--hash=sha256:[0-9a-f]{64}[^\n]*\n)*)",
    re.MULTILINE,
)


def pinned(lock: str) -> dict[str, tuple[str, str]]:
    """By name: version, and the lines of hashes."""
    return {_normal(name): (version, hashes) for name, version, hashes in _PIN.findall(lock)}


def faults(bill: dict[str, Any], lock: str) -> Iterator[str]:
    """What the bill lacks of the lock, and what may not be in it."""
    versions = {_normal(one["name"]): one["version"] for one in bill["components"]}
    for name, (version, _) in pinned(lock).items():
        if versions.get(name) != version:
            yield f"{name} {version} is locked, and the bill has {versions.get(name)}"
    yield from (f"{name} is not locked" for name in versions.keys() - pinned(lock).keys())
    for one in bill["components"]:
        licences = [_licence(entry) for entry in one.get("licenses", ())]
        parts = {part for licence in licences for part in licence.split(" AND ")}
        if not parts or not parts <= ALLOWED:
            yield f"{one['name']} has the licence {sorted(parts) or 'none'}"


def _licence(entry: dict[str, Any]) -> str:
    named = entry.get("license", {})
    return str(entry.get("expression") or named.get("id") or named.get("name"))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    """What the command wrote."""
    written: dict[str, Any] = json.loads(Path(os.environ["SBOM"]).read_text())
    return written


@pytest.fixture(scope="module")
def lock() -> str:
    """What the image installs."""
    return (ROOT / "requirements.lock").read_text()


def test_the_bill_names_each_locked_package_and_only_allowed_licences(
    bill: dict[str, Any], lock: str
) -> None:
    """In the locked version."""
    assert not list(faults(bill, lock))
    assert bill["metadata"]["component"]["name"] == "eurekube-sync"


def test_a_bill_with_a_fault_is_noticed(bill: dict[str, Any], lock: str) -> None:
    """A package that is missing, one of another version, one that nobody locked, and a licence that
    nobody allowed."""
    first, second, third, *others = bill["components"]
    strange = {
        "name": "strange",
        "version": "1",
        "licenses": [{"license": {"id": "AGPL-3.0-only"}}],
    }
    wrong = {
        **bill,
        "components": [{**second, "version": "0"}, {**third, "licenses": []}, strange, *others],
    }
    found = " ".join(faults(wrong, lock))
    for fault in (
        f"{_normal(first['name'])} {first['version']} is locked, and the bill has None",
        f"{_normal(second['name'])} {second['version']} is locked, and the bill has 0",
        f"{third['name']} has the licence none",
        "strange is not locked",
        "strange has the licence ['AGPL-3.0-only']",
    ):
        assert fault in found


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_each_locked_package_has_hashes(name: str) -> None:
    """Pip takes no other file then."""
    lock = (ROOT / name).read_text()
    assert len(pinned(lock)) == lock.count("==") > 4
    assert not [package for package, (_, hashes) in pinned(lock).items() if not hashes]


def test_the_tests_run_with_what_the_image_installs(lock: str) -> None:
    """constraints.lock has the same versions."""
    tested = pinned((ROOT / "constraints.lock").read_text())
    assert {name: tested[name][0] for name in pinned(lock)} == {
        name: pin[0] for name, pin in pinned(lock).items()
    }
