"""The wheel: two builds of one tree are the same, to the byte; and what PyPI shows of it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_string
from pathlib import Path

from tests.deployment.rendered import ROOT

SOURCES = ("crds", "eurekube_sync", "pyproject.toml", "README.md", "LICENSE")


def copied(folder: Path, umask: int) -> Path:
    """A copy of what the wheel is made of, with the times of now."""
    before = os.umask(umask)
    try:
        folder.mkdir()
        for name in SOURCES:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(ROOT / name, folder / name)
    finally:
        os.umask(before)
    return folder


def run(*command: str | Path) -> None:
    """AssertionError, with what it says, when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_builds_are_the_same(tmp_path: Path) -> None:
    """In folders of other names, at other times, by people with another umask."""
    wheels = []
    for name, umask in (("one", 0o022), ("another", 0o027)):
        wheel = built(copied(tmp_path / name, umask), tmp_path)
        wheels.append((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    assert wheels[0] == wheels[1]


def test_the_links_of_the_description_lead_to_the_files_of_its_version(tmp_path: Path) -> None:
    """PyPI shows README.md, and has none of the files that it links to."""
    wheel = built(copied(tmp_path / "one", 0o022), tmp_path)
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as packed:
        metadata = packed.read(f"eurekube_sync-{version}.dist-info/METADATA").decode()
    headers = message_from_string(metadata)
    assert headers["Description-Content-Type"] == "text/markdown"
    (repository,) = re.findall(r"Project-URL: Repository, (\S+)", metadata)
    targets = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", str(headers.get_payload()))
    readme = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(targets) == len(readme) >= 40
    for (image, target), relative in zip(targets, readme, strict=True):
        view = "raw" if image else "blob"
        assert target == f"{repository}/{view}/v{version}/{relative}"
        assert (ROOT / relative.partition("#")[0]).exists()


def built(folder: Path, environment: Path) -> Path:
    """Return the wheel of a folder, built by a pip of its own."""
    if not (environment / "venv").exists():
        run(sys.executable, "-m", "venv", environment / "venv")
    pip, dist = environment / "venv" / "bin" / "pip", folder / "dist"
    run(pip, "wheel", "--quiet", "--no-deps", "-w", dist, folder)
    (wheel,) = dist.glob("*.whl")
    return wheel
