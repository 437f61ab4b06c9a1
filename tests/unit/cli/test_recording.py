"""The folder of records: its size is limited, nobody else may read it, and damaged records do no
harm."""

from __future__ import annotations

import gzip
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.command_line import cli
from eurekube_sync.cli.commands.replay import Recorder, record_files
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import ConfigurationError
from tests.unit.controller.test_reconcile import add_app
from tests.unit.controller.test_report import eureka
from tests.unit.worlds.build import endpoint, piece
from tests.unit.worlds.fakes import FakeWorld

NIGHT = 1_795_403_524.0  # 2026-11-23T03:12:04Z


def at(moment: float, report: PassReport) -> PassReport:
    """The same report with another time."""
    return replace(report, at=moment)


@pytest.fixture(autouse=True)
def morning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock to some minutes after the last pass."""
    monkeypatch.setattr(SystemClock, "now", lambda self: NIGHT + 400)


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """Three passes at intervals of a minute. The first registers two pods, the second changes
    nothing, and the third cancels one."""
    folder = tmp_path / "deep" / "records"
    recorder, world = Recorder(folder, most_bytes=10**6), FakeWorld()
    add_app(world, "app", 0)
    world.cluster.apply(piece(endpoint(1), endpoint(2), service="app"))
    recorder.keep(at(NIGHT - 120, world.run()), ExitCode.OK)
    world.later(60)
    recorder.keep(at(NIGHT - 60, world.run()), ExitCode.OK)
    world.later(60)
    world.cluster.apply(piece(endpoint(2), service="app"))
    recorder.keep(at(NIGHT, world.run()), ExitCode.OK)
    return folder


def said(*arguments: str | Path) -> Result:
    """Return the result of `replay`."""
    return CliRunner().invoke(
        cli, ["replay", *map(str, arguments)], standalone_mode=False, env={"COLUMNS": "200"}
    )


def refused(*arguments: str | Path) -> str:
    """Return the sentence with which `replay` refuses."""
    error = said(*arguments).exception
    assert isinstance(error, ConfigurationError), error
    return str(error)


def test_the_reason_of_a_removal_is_found_by_its_address(night: Path) -> None:
    """Each line has the time. Decisions about other instances are left out."""
    result = said(night, "10.0.0.1")
    assert result.return_value == ExitCode.OK, result.output
    registered, cancelled, last = result.stdout.splitlines()
    assert registered.startswith("2026-11-23T03:10:04Z  register  APP/")
    assert cancelled.startswith("2026-11-23T03:12:04Z  cancel  APP/")
    assert cancelled.endswith("Done: it has no endpoint any more")
    assert (
        last
        == "3 passes recorded, 2026-11-23T03:10:04Z to 2026-11-23T03:12:04Z; 1 decided nothing "
        "about 10.0.0.1"
    )
    assert [
        len(said(night, part).stdout.splitlines()) for part in ("app", "0.0.1", "10.0.0", "10.0.0.")
    ] == [
        4,
        1,
        4,
        4,
    ]


def test_the_last_line_says_what_it_is_about_if_a_record_is_damaged(night: Path) -> None:
    """The first record is damaged, and the last line counts the others."""
    min(night.iterdir()).write_bytes(b"{")
    result = said(night, "10.0.0.1")
    assert result.return_value == ExitCode.CONFIGURATION
    assert result.stdout.splitlines()[-1].endswith("; 1 decided nothing about 10.0.0.1")


def test_all_passes_are_listed_that_decided_something(night: Path) -> None:
    """Each is shown by its last line."""
    lines = said(night).stdout.splitlines()
    assert lines[0] == "2026-11-23T03:10:04Z  2 registered, 0 renewed"
    assert lines[1] == "2026-11-23T03:12:04Z  1 cancelled, 1 renewed"
    assert lines[2].endswith("; 1 decided nothing")


@pytest.mark.parametrize(
    ("moment", "summary"),
    [
        ("03:12", "1 cancelled"),
        ("03:12:04", "1 cancelled"),
        ("03:12:03", "in sync"),
        ("2026-11-23T03:11Z", "in sync"),
        ("2026-11-23 03:10:59", "2 registered"),
        ("2026-12-24 00:00", "1 cancelled"),
        ("02:00", None),
        ("23:59", None),
    ],
)
def test_one_pass_is_planned_again(night: Path, moment: str, summary: str | None) -> None:
    """It is the last pass that began at or before this time. A time without a day is the last such
    time."""
    if summary is None:
        assert "no pass was recorded before 2026-11-2" in refused(night, "--at", moment)
        return
    result = said(night, "--at", moment)
    assert result.return_value == ExitCode.OK
    assert summary in result.stdout.splitlines()[-1]
    assert ("UP > gone" in result.stdout) == (summary == "1 cancelled")


def test_a_time_without_a_day_is_the_last_such_time_before_now(
    night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The age of the newest record does not matter. The last line shows its day."""
    monkeypatch.setattr(SystemClock, "now", lambda self: NIGHT + 86_400)
    for moment in ("03:12", "23:59", "2026-11-25T00:00"):
        assert (
            said(night, "--at", moment).stdout.splitlines()[-1].startswith("2026-11-23T03:12:04Z")
        )


def test_a_wrong_time_is_one_sentence(night: Path) -> None:
    """The exit code is that of a wrong command line."""
    for text in ("noon", "25:00", "2026-02-30 03:12", "9999-12-31 23:59"):
        result = CliRunner().invoke(cli, ["replay", str(night), "--at", text])
        assert result.exit_code == ExitCode.USAGE
        assert "is not a time; write 03:12 or 2026-11-23T03:12:05Z" in result.output


def test_a_plan_that_differs_is_reported(night: Path) -> None:
    """An update of the program could cause this. Here the record is changed."""
    newest = sorted(night.iterdir())[-1]
    text = gzip.decompress(newest.read_bytes())
    changed = text.replace(b'"decided":[["cancel"', b'"decided":[["update"')
    assert changed != text
    newest.write_bytes(gzip.compress(changed))
    result = said(night, "--at", "03:12")
    assert result.return_value == ExitCode.INCOMPLETE
    assert "planned this pass differently; this is the plan of version" in result.stdout


def test_a_plan_whose_reasons_are_worded_otherwise_is_the_same_plan(night: Path) -> None:
    """Another version may use other sentences. Only the decisions are compared."""
    newest = sorted(night.iterdir())[-1]
    text = gzip.decompress(newest.read_bytes())
    changed = text.replace(b"it has no endpoint any more", b"it is without an endpoint")
    assert changed != text
    newest.write_bytes(gzip.compress(changed))
    result = said(night, "--at", "03:12")
    assert result.return_value == ExitCode.OK
    assert "planned this pass differently" not in result.stdout


def test_the_folder_never_grows_above_its_limit(tmp_path: Path) -> None:
    """The oldest records are deleted first. The newest stays, however small the limit."""
    world = FakeWorld()
    add_app(world, "app", 3)
    report = world.run()
    Recorder(tmp_path, most_bytes=10**6).keep(at(NIGHT, report), ExitCode.OK)
    size = next(tmp_path.iterdir()).stat().st_size
    (tmp_path / "mine.txt").write_text("x" * 10**5)
    recorder = Recorder(tmp_path, most_bytes=3 * size + 100)
    for number in range(1, 10):
        recorder.keep(at(NIGHT + number, report), ExitCode.OK)
    left = [file.at.timestamp() for file in record_files(tmp_path)]
    assert left == [NIGHT + number for number in (7, 8, 9)]
    Recorder(tmp_path, most_bytes=1).keep(at(NIGHT + 10, report), ExitCode.OK)
    assert [file.at.timestamp() for file in record_files(tmp_path)] == [NIGHT + 10]
    assert (tmp_path / "mine.txt").exists()


def test_a_left_over_file_and_a_record_of_the_future_go_before_the_newest(tmp_path: Path) -> None:
    """A killed process leaves a partial file. A wrong clock leaves a record that would always be
    the newest."""
    report = FakeWorld().run()
    part = tmp_path / "pass-20200101T000000.000Z-00000000.json.part"
    future = tmp_path / "pass-29990101T000000.000Z-00000000.json.gz"
    for one in (part, future):
        one.write_bytes(b"x" * 10**5)
    recorder = Recorder(tmp_path, most_bytes=10**5)
    for number in range(2):
        recorder.keep(at(NIGHT + number, report), ExitCode.OK)
    assert [file.at.timestamp() for file in record_files(tmp_path)] == [NIGHT, NIGHT + 1]
    assert not part.exists()


def test_a_file_of_no_time_is_no_record(night: Path) -> None:
    """Its name looks like a record's, but the time in it is invalid."""
    (night / "pass-20269999T999999.999Z-00000000.json.gz").write_text("")
    assert len(record_files(night)) == 3
    assert said(night).return_value == ExitCode.OK


def test_a_folder_without_a_name_is_a_wrong_command_line() -> None:
    """An empty variable of a script gives an empty name, which would mean the working directory."""
    result = CliRunner().invoke(cli, ["replay", ""])
    assert (result.exit_code, "it is empty" in result.output) == (ExitCode.USAGE, True)


def test_a_pass_that_could_not_read_all_did_not_decide_nothing(tmp_path: Path) -> None:
    """The summary counts such passes separately."""
    world = FakeWorld()
    add_app(world, "app", 1)
    recorder = Recorder(tmp_path, most_bytes=10**6)
    recorder.keep(at(NIGHT, world.run()), ExitCode.OK)
    world.later(60)
    eureka(world)
    recorder.keep(at(NIGHT + 60, world.run()), ExitCode.EUREKA_UNREAD)
    assert said(tmp_path).stdout.splitlines()[-1].endswith("Z; 1 could not plan everything")


def test_messages_of_another_form_are_not_shown(night: Path) -> None:
    newest = sorted(night.iterdir())[-1]
    text = gzip.decompress(newest.read_bytes())
    newest.write_bytes(gzip.compress(text.replace(b'"messages":[]', b'"messages":5')))
    assert said(night, "--at", "03:12").return_value == ExitCode.OK


def test_nobody_else_may_read_a_record(tmp_path: Path) -> None:
    """This holds for the new folder and for its files."""
    folder = tmp_path / "records"
    world = FakeWorld()
    Recorder(folder, most_bytes=10**6).keep(world.run(), ExitCode.OK)
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_folder_that_cannot_be_written_later_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line reports the start and one the end. The passes continue."""
    folder = tmp_path / "records"
    recorder, report = Recorder(folder, most_bytes=10**6), FakeWorld().run()
    caplog.set_level(logging.INFO)
    folder.rename(tmp_path / "away")
    folder.write_text("in its place")
    for _ in range(3):
        recorder.keep(report, ExitCode.OK)
    folder.unlink()
    (tmp_path / "away").rename(folder)
    recorder.keep(report, ExitCode.OK)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "File exists" in caplog.messages[0]


def test_a_folder_that_cannot_be_made_stops_no_pass(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure is reported once. Records begin as soon as the folder can be created."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "records"
    caplog.set_level(logging.INFO)
    recorder, report = Recorder(folder, most_bytes=10**6), FakeWorld().run()
    for _ in range(2):
        recorder.keep(report, ExitCode.OK)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.messages[0].endswith(f"into {folder}: Not a directory")
    (tmp_path / "file").unlink()
    recorder.keep(report, ExitCode.OK)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert len(record_files(folder)) == 1
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_file_in_place_of_the_folder_is_refused_at_the_start(tmp_path: Path) -> None:
    """This is a wrong command line, not an outage."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"--record .*file is a file, and not a folder"):
        Recorder(tmp_path / "file", most_bytes=1)


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    """The folder is empty, is missing, or is a file."""
    (tmp_path / "file").write_text("")
    assert f"there is no record in {tmp_path}" in refused(tmp_path)
    assert "cannot be read: No such file or directory" in refused(tmp_path / "none")
    assert "cannot be read: Not a directory" in refused(tmp_path / "file")


DAMAGED = {
    "cut": (lambda good: good[: len(good) // 2], "cannot be read: it is cut"),
    "no gzip": (lambda good: b"{}", "cannot be read: it is cut"),
    "no JSON": (lambda good: gzip.compress(b"{"), "is cut, or not a record"),
    "deep": (lambda good: gzip.compress(b"[" * 100_000), "is cut, or not a record"),
    "a bomb": (lambda good: gzip.compress(b" " * (3 << 20)), "is too large for a record"),
    "something else": (lambda good: gzip.compress(b'{"format": "x"}'), "is not a record"),
    "a changed basis": (
        lambda good: gzip.compress(gzip.decompress(good).replace(b'"@":"Service"', b'"@":"Pod"')),
        "is damaged, or of another version",
    ),
    "a wrong type": (
        lambda good: gzip.compress(
            gzip.decompress(good).replace(b'"address":"10.0.0.2"', b'"address":{"[":[]}')
        ),
        "is damaged, or of another version",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_record_is_one_sentence(
    night: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names the file. A list still shows the other records."""
    monkeypatch.setattr("eurekube_sync.cli.commands.replay._MOST_BYTES", 2 << 20)
    damage, expected = DAMAGED[name]
    newest = sorted(night.iterdir())[-1]
    newest.write_bytes(damage(newest.read_bytes()))  # type: ignore[no-untyped-call]
    assert expected in refused(night, "--at", "03:12")
    result = said(night)
    assert "2 registered, 0 renewed" in result.stdout
    if name not in ("a changed basis", "a wrong type"):
        assert result.return_value == ExitCode.CONFIGURATION
        assert newest.name in result.stdout


def test_a_link_is_not_followed(night: Path, tmp_path: Path) -> None:
    """It may lead out of the folder."""
    newest = sorted(night.iterdir())[-1]
    newest.rename(tmp_path / newest.name)
    newest.symlink_to(tmp_path / newest.name)
    assert len(record_files(night)) == 2
