"""Files that the program writes: complete, private if they name hosts, and never written through a
stranger's link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eurekube_sync.files import write_new


@pytest.mark.parametrize("umask", [0o022, 0o077], ids=oct)
@pytest.mark.parametrize("mode", [0o600, 0o644], ids=oct)
def test_a_link_in_place_of_the_file_is_replaced(tmp_path: Path, mode: int, umask: int) -> None:
    """The target of the link stays unchanged. The new file has the requested mode."""
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "ours").symlink_to(tmp_path / "theirs")
    before = os.umask(umask)
    try:
        write_new(tmp_path / "ours", tmp_path / "part", b"ours", mode=mode)
    finally:
        os.umask(before)
    assert ((tmp_path / "theirs").read_text(), (tmp_path / "ours").read_text()) == (
        "theirs",
        "ours",
    )
    assert not (tmp_path / "ours").is_symlink()
    assert (tmp_path / "ours").stat().st_mode & 0o777 == mode
    assert not (tmp_path / "part").exists()


def test_a_link_in_place_of_the_temporary_file_is_refused(tmp_path: Path) -> None:
    """An attacker who guesses the temporary name gains nothing."""
    (tmp_path / "part").symlink_to(tmp_path / "theirs")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "ours", tmp_path / "part", b"ours", mode=0o600)
    assert not (tmp_path / "theirs").exists()


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    """A folder has the file's name."""
    (tmp_path / "ours").mkdir()
    with pytest.raises(IsADirectoryError):
        write_new(tmp_path / "ours", tmp_path / "part", b"ours", mode=0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_a_pipe_or_a_device_in_its_place_stays(tmp_path: Path) -> None:
    """Otherwise root would replace /dev/null by a file."""
    os.mkfifo(tmp_path / "ours")
    with pytest.raises(OSError, match="it is a pipe or a device"):
        write_new(tmp_path / "ours", tmp_path / "part", b"ours", mode=0o644)
    assert (tmp_path / "ours").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]
