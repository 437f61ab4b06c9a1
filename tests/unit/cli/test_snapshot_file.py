"""The snapshot's file: whole or not at all, private, and never another's."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from eurekube_sync.cli.snapshot_file import SnapshotFile, SnapshotKeeper
from eurekube_sync.errors import ConfigurationError, RegistryRejected
from eurekube_sync.model import InstanceKey
from eurekube_sync.scope import Scope
from tests.unit.core.build import endpoint, key
from tests.unit.core.fakes import FakeWorld
from tests.unit.core.test_reconcile import article, pods


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the snapshot is to be."""
    return tmp_path / "snapshot.json"


def keep(world: FakeWorld, path: Path, *, keeper: SnapshotKeeper | None = None) -> None:
    """One pass, and its snapshot."""
    (keeper or SnapshotKeeper(str(path), Scope())).keep(world.run(), world.clock.now())


def only(path: Path) -> None:
    """No temporary file was left beside it."""
    assert os.listdir(path.parent) == [path.name]


def test_a_good_pass_writes_a_private_file(file: Path) -> None:
    """Mode 0600, whatever the umask, and no other file beside it."""
    keep(article(), file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert set(SnapshotFile(str(file)).load().instances) == {key(1), key(2)}
    only(file)


def test_it_is_written_when_something_changed_or_it_grows_old(file: Path) -> None:
    """Passes in sync leave the file as it is, for ten minutes; a file that is gone is written again."""
    world, keeper = article(), SnapshotKeeper(str(file), Scope())
    keep(world, file, keeper=keeper)
    first = file.stat().st_ino, file.stat().st_mtime_ns
    world.later(599)
    keep(world, file, keeper=keeper)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == first
    world.later(1)
    keep(world, file, keeper=keeper)
    assert SnapshotFile(str(file)).load().taken == world.clock.now()
    file.unlink()
    keep(world, file, keeper=keeper)
    assert file.exists()


def test_a_bad_pass_writes_only_what_it_took_away(file: Path) -> None:
    """The cancelled instance is taken out; a pass that withdrew nothing leaves the file alone."""
    world = article()
    keep(world, file)
    text = file.read_bytes()
    world.registry.refuse[key(3)] = RegistryRejected("no")
    pods(world, endpoint(1), endpoint(2), endpoint(3))
    keep(world, file)
    assert file.read_bytes() == text
    pods(world, endpoint(2), endpoint(3))
    keep(world, file)
    assert set(SnapshotFile(str(file)).load().instances) == {key(2)}


def test_what_a_pass_is_about_to_cancel_is_out_of_the_file_before(file: Path) -> None:
    """A `keepalive` that meets the 404 meanwhile must not bring a dead pod back."""
    world, keeper = article(), SnapshotKeeper(str(file), Scope())
    keep(world, file, keeper=keeper)
    pods(world, endpoint(2), endpoint(1, ready=False))
    world.withdrawing = keeper.forget
    at_the_call: list[set[InstanceKey]] = []

    def look() -> None:
        if world.wire.calls[-1] in (f"register {key(1)}", f"cancel {key(1)}"):
            at_the_call.append(set(SnapshotFile(str(file)).load().up))

    world.wire.then = look
    world.run()
    pods(world, endpoint(2))
    world.run()
    assert at_the_call == [{key(2)}] * 2


def test_a_reader_sees_each_new_version(file: Path) -> None:
    """What was read is kept as long as the file is the same one."""
    world, reader = article(), SnapshotFile(str(file))
    keep(world, file)
    first = reader.load()
    assert reader.load() is first
    pods(world, endpoint(1))
    keep(world, file)
    assert set(reader.load().instances) == {key(1)}


@pytest.mark.parametrize("content", [b"apiVersion: v1\nkind: Config\n", b'{"kind": "Pod", "version": 1}'])
def test_a_file_that_is_no_snapshot_is_never_written_over(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody's kubeconfig, say: a warning, and it stays as it is."""
    file.write_bytes(content)
    keep(article(), file)
    assert file.read_bytes() == content
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert str(file) in caplog.text


def test_an_empty_file_is_written(file: Path) -> None:
    """As `touch` and `mktemp` make them."""
    file.touch()
    keep(article(), file)
    assert SnapshotFile(str(file)).load().instances


def test_two_installations_do_not_write_one_file(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The second one, here of another scope, is told; its passes go on, and the sentence is said once."""
    world = article()
    keep(world, file)
    text = file.read_bytes()
    second = SnapshotKeeper(str(file), Scope(namespaces=frozenset({"rating"})))
    for _ in range(3):
        keep(world, file, keeper=second)
    assert file.read_bytes() == text
    assert len(caplog.records) == 1
    assert "another installation" in caplog.text
    assert "delete this one" in caplog.text


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_what_cannot_be_written_is_a_warning(
    file: Path, code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk leaves the old file, and nothing beside it; when it works again, so does the next pass."""
    world, keeper = article(), SnapshotKeeper(str(file), Scope())
    keep(world, file, keeper=keeper)
    text = file.read_bytes()
    pods(world, endpoint(1))

    def fail(number: int) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        for _ in range(2):
            keep(world, file, keeper=keeper)
    assert file.read_bytes() == text
    only(file)
    assert [record.getMessage() for record in caplog.records] == [
        f"no snapshot was written to {file}: {os.strerror(code)}"
    ]
    keep(world, file, keeper=keeper)
    assert set(SnapshotFile(str(file)).load().instances) == {key(1)}


def test_a_missing_folder_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And so is a folder or a device in the file's place."""
    world = article()
    for path in (tmp_path / "missing" / "snapshot.json", tmp_path, Path("/dev/zero")):
        keep(world, path)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3
    assert "No such file or directory" in caplog.text
    assert caplog.text.count("is no regular file") == 2


def test_a_symbolic_link_stays_one(file: Path, tmp_path: Path) -> None:
    """The file that it leads to is replaced."""
    link = tmp_path / "link.json"
    link.symlink_to(file)
    keep(article(), link)
    assert link.is_symlink()
    assert file.is_file()


def test_a_file_that_is_not_there_is_a_sentence(file: Path) -> None:
    """The reader is told which file, and why."""
    with pytest.raises(ConfigurationError, match=rf"the snapshot {file} cannot be read: No such file"):
        SnapshotFile(str(file)).load()
