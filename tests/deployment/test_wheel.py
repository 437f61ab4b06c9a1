"""The wheel: two builds of one tree are the same, to the byte."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
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
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    wheels = []
    for name, umask in (("one", 0o022), ("another", 0o027)):
        folder = copied(tmp_path / name, umask)
        run(
            tmp_path / "venv" / "bin" / "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "-w",
            folder / "dist",
            folder,
        )
        (wheel,) = (folder / "dist").glob("*.whl")
        wheels.append((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    assert wheels[0] == wheels[1]
