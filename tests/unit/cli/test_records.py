"""Records of passes: `--from` makes a pass again, their folder is limited, and they hold no secret.

That each pass decides the same when it is made again, the simulation checks in every story."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.objects import PodHostItem
from eurekube_sync.cli import records
from eurekube_sync.cli.command_line import cli
from eurekube_sync.cli.monitoring.metrics import UNWRITTEN, Monitor
from eurekube_sync.cli.records import Record, Recorder, decoded, encoded, record_at, recorded_pass
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.controller.record import Hiding, decisions
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.struct import replace
from tests.in_process.workers import InTurn
from tests.simulation.town import Town

MORNING = datetime(2027, 1, 15, 9, tzinfo=UTC)
PLANTED = "hunter2-s3cr3t"


@pytest.fixture(autouse=True)
def morning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock to an hour after the passes."""
    monkeypatch.setattr(SystemClock, "now", lambda self: MORNING.timestamp())


class Night:
    """Records of a town: at 08:01:00 a pass that changes nothing, at 08:01:30 one that cancels an
    instance whose pod has ended, at 08:02:00 another one that changes nothing."""

    def __init__(self, folder: Path, most_bytes: int = 10**7) -> None:
        self.folder, self.town = folder, Town(3, 2)
        self.recorder = Recorder(folder, self.town.recording, most_bytes=most_bytes)

    def sleep(self) -> Night:
        """Make the three passes."""
        self.good()
        self.town.end(self.town.pods(self.town.apps[0])[:1])
        self.good()
        self.good()
        return self

    def good(self) -> None:
        """Make one pass, and keep its record."""
        self.recorder.keep(self.town.good(), ExitCode.OK)

    @property
    def files(self) -> list[Path]:
        """The records, the oldest first."""
        return sorted(self.folder.glob("*.json.gz"))

    def again(self, record: Record) -> list[tuple[str, str, str, str]]:
        """What the pass decides that is made again from this record."""
        world = recorded_pass(record).world(InTurn())
        return decisions(reconcile(world, replace(record.settings, dry_run=True)))

    def moments(self) -> list[str]:
        """The times of day of the records."""
        return [file.name[14:20] for file in self.files]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path / "deep" / "records").sleep()


def said(*arguments: str | Path) -> Result:
    """Return the result of a command."""
    return CliRunner().invoke(
        cli, [*map(str, arguments)], standalone_mode=False, env={"COLUMNS": "200"}
    )


def refused(*arguments: str | Path) -> str:
    """Return the sentence with which a command refuses."""
    error = said(*arguments).exception
    assert error is not None
    return str(getattr(error, "message", error))


def test_why_an_address_was_removed_is_answered_offline(night: Night) -> None:
    """No option of the installation is needed, and no server is there."""
    result = said("explain", "10.0.0.1", "--from", night.folder, "--at", "08:01:30")
    assert result.return_value == ExitCode.NOT_REGISTERED
    assert "a pass removes 10.0.0.1:8080: it has no endpoint any more" in result.output
    before = said("explain", "10.0.0.1", "--from", night.folder, "--at", "2027-01-15 08:01:29")
    assert (before.return_value, "Registered: 1 of 1 UP as APP0." in before.output) == (
        ExitCode.OK,
        True,
    )
    after = said("explain", "10.0.0.1", "--from", night.folder)
    assert "no syncer wants 10.0.0.1, and Eureka does not list it" in after.output


def test_a_dry_run_and_a_status_read_a_record(night: Night) -> None:
    """They have the owner, the scope and the brake of the recorded pass."""
    dry = said("run", "--dry-run", "--from", night.folder, "--at", "08:01:30", "-o", "json")
    report = json.loads(dry.output)
    assert (report["owner"], report["dryRun"]) == ("town", True)
    assert [(one["id"], one["why"]) for one in report["actions"] if one["action"] == "cancel"] == [
        ("town:team:app0:10.0.0.1:8080", "it has no endpoint any more")
    ]
    shown = said("status", "--from", night.folder, "--all")
    assert "3 syncers: 3 in sync; 5 instances UP" in shown.output


@pytest.mark.parametrize(
    ("moment", "record"),
    [
        ("08:01", "080130"),
        ("08:01:29", "080100"),
        ("2027-01-15T08:02Z", "080200"),
        ("2027-02-24 00:00", "080200"),
        ("23:59", ""),
        ("07:00", ""),
    ],
)
def test_a_time_chooses_the_last_pass_at_or_before_it(
    night: Night, moment: str, record: str
) -> None:
    """A time without a day is the last such time before now."""
    arguments = ("run", "--dry-run", "--from", night.folder, "--at", moment, "-o", "json")
    if not record:
        assert "no pass was recorded before 2027-01-1" in refused(*arguments)
    else:
        at = json.loads(said(*arguments).output)["at"]
        assert at[11:19].replace(":", "") == record


def test_a_wrong_command_line_is_one_sentence(night: Night, tmp_path: Path) -> None:
    """What a record says itself cannot be given as well."""
    (tmp_path / "dump").write_text("")
    from_ = ("--from", str(night.folder))
    for arguments, expected in (
        (("run", *from_), "--from requires --dry-run"),
        (("run", "--dry-run", *from_, "--owner", "x"), "leave out --owner"),
        (("status", *from_, "-n", "team"), "leave out --namespace"),
        (("status", *from_, "--watch"), "--watch and --from are mutually exclusive"),
        (
            ("explain", "app0", *from_, "--from", str(tmp_path / "dump")),
            "give nothing else with it",
        ),
        (("explain", "app0", "--at", "03:12"), "--at requires --from DIR"),
        *(
            (("status", *from_, "--at", text), "is not a time; write 03:12")
            for text in ("noon", "25:00", "9999-12-31 23:59")
        ),
    ):
        assert expected in refused(*arguments)


def test_a_plan_that_differs_is_reported(night: Night) -> None:
    """An update of the program could cause this. The wording of reasons may change. Here the record
    is changed."""
    reworded, otherwise = b"it has no endpoint any more", b'"decided":[["cancel"'
    for was, becomes in ((reworded, b"it has none"), (otherwise, b'"decided":[["update"')):
        text = gzip.decompress(night.files[1].read_bytes())
        assert was in text
        night.files[1].write_bytes(gzip.compress(text.replace(was, becomes)))
        result = said("run", "--dry-run", "--from", night.folder, "--at", "08:01:30")
        assert result.return_value == ExitCode.OK
        assert ("planned this pass differently" in result.output) == (was is otherwise)


def test_the_folder_never_grows_above_its_limit(tmp_path: Path) -> None:
    """The oldest records are deleted first. The newest stays, however small the limit."""
    night = Night(tmp_path)
    night.good()
    (tmp_path / "mine.txt").write_text("x" * 10**5)
    night.recorder = Recorder(
        tmp_path, night.town.recording, most_bytes=int(3.5 * night.files[0].stat().st_size)
    )
    for _ in range(4):
        night.good()
    assert night.moments() == ["080200", "080230", "080300"]
    night.recorder = Recorder(tmp_path, night.town.recording, most_bytes=1)
    night.good()
    assert night.moments() == ["080330"]
    assert (tmp_path / "mine.txt").exists()


def test_a_record_that_cannot_be_written_is_told_once_and_measured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A pass matters more than its record. Without the metric, nobody would miss the records until
    they are needed."""
    caplog.set_level("INFO")
    in_the_way = tmp_path / "disk"
    in_the_way.write_text("no folder")
    night = Night(in_the_way / "records")
    monitor = Monitor(night.town.clock, "shop", "all", allowed=1)
    assert UNWRITTEN not in monitor.values()
    monitor.records(night.recorder.unwritten)
    assert monitor.values()[UNWRITTEN] == {(): 1}
    night.sleep()
    assert monitor.values()[UNWRITTEN] == {(): 1}
    in_the_way.unlink()
    night.good()
    assert monitor.values()[UNWRITTEN] == {(): 0}
    assert night.moments() == ["080230"]
    folder = in_the_way / "records"
    assert [record.getMessage() for record in caplog.records if "records" in record.name] == [
        f"cannot write records to {folder}: Not a directory",
        f"records are written to {folder} again",
    ]


def test_a_left_over_file_and_a_record_of_the_future_go_before_the_newest(tmp_path: Path) -> None:
    """A killed process leaves a partial file. A wrong clock leaves a record that would always be
    the newest."""
    part = tmp_path / "pass-20200101T000000.000Z-00000000.json.part"
    future = tmp_path / "pass-29990101T000000.000Z-00000000.json.gz"
    for file in (part, future):
        file.write_bytes(b"x" * 10**5)
    night = Night(tmp_path, most_bytes=10**5).sleep()
    assert night.moments() == ["080100", "080130", "080200"]
    assert not part.exists()


def test_what_is_no_record_is_left_out(night: Night, tmp_path: Path) -> None:
    """A link may lead out of the folder, and a name may hold no valid time."""
    (night.folder / "pass-20276999T999999.999Z-00000000.json.gz").write_text("")
    newest = night.files[-2]
    newest.rename(tmp_path / newest.name)
    newest.symlink_to(tmp_path / newest.name)
    assert record_at(night.folder, None).at < MORNING.timestamp() - 3480


def test_nobody_else_may_read_a_record(night: Night) -> None:
    """This holds for the new folder and for its files."""
    modes = {file.stat().st_mode & 0o777 for file in night.files}
    assert (night.folder.stat().st_mode & 0o777, modes) == (0o700, {0o600})


def test_a_folder_that_cannot_be_written_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It cannot be made, or goes away later. One line reports the start and one the end. The passes
    continue."""
    (tmp_path / "file").write_text("")
    caplog.set_level(logging.INFO)
    night = Night(tmp_path / "file" / "records")
    night.good()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.messages[0].endswith(f"to {night.folder}: Not a directory")
    (tmp_path / "file").unlink()
    night.good()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert len(night.files) == 1


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    """A file in place of the folder is refused when a run begins."""
    (tmp_path / "file").write_text("")
    assert f"there is no record in {tmp_path}" in refused("status", "--from", tmp_path)
    with pytest.raises(ConfigurationError, match=r"--record .*file is a file, and not a folder"):
        Night(tmp_path / "file")
    with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory"):
        record_at(tmp_path / "none", None)


DAMAGED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut": (lambda good: good[: len(good) // 2], "cannot be read: it is cut"),
    "no gzip": (lambda good: b"{}", "cannot be read: it is cut"),
    "no JSON": (lambda good: gzip.compress(b"{"), "is damaged, or a record of another version"),
    "deep": (
        lambda good: gzip.compress(b"[" * 100_000),
        "is damaged, or a record of another version",
    ),
    "a bomb": (lambda good: gzip.compress(b" " * (3 << 20)), "is too large for a record"),
    "another format": (
        lambda good: gzip.compress(gzip.decompress(good).replace(b"record/v1", b"record/v9")),
        "is not a record of a pass",
    ),
    "a wrong type": (
        lambda good: gzip.compress(
            gzip.decompress(good).replace(b'"owner":"town"', b'"owner":{}', 1)
        ),
        "is damaged, or a record of another version",
    ),
    "wrong instances": (
        lambda good: gzip.compress(
            gzip.decompress(good).replace(b'"instanceId":"', b'"instanceId":7,"x":"', 1)
        ),
        "the record is damaged",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_record_is_one_sentence(
    night: Night, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may have written it."""
    monkeypatch.setattr(records, "_MOST_BYTES", 2 << 20)
    damage, expected = DAMAGED[name]
    night.files[-1].write_bytes(damage(night.files[-1].read_bytes()))
    assert expected in refused("explain", "app0", "--from", night.folder)


# --- Secrets --------------------------------------------------------------------------------------


def secret(town: Town) -> None:
    """Plant a secret in every place where somebody could have put one, and let the metadata of an
    instance change."""
    path = f"/apis/eurekube.io/v1/namespaces/team/eurekasyncers/{town.apps[0].name}"
    spec = {
        "metadata": {
            "user.password": PLANTED,
            "page": f"http://joe:{PLANTED}@intern/",
            "team": "blue",
        },
        "metadataFrom": [{"key": "api-key", "serviceAnnotation": "example.com/plain"}],
    }
    annotations = {
        "example.com/plain": PLANTED,
        "example.com/other": PLANTED,
        "last": f'{{"password": "{PLANTED}"}}',
    }
    town.ask("PATCH", path, {"spec": spec, "metadata": {"annotations": {"note": PLANTED}}})
    service = f"/api/v1/namespaces/team/services/{town.apps[0].name}"
    town.ask("PATCH", service, {"metadata": {"annotations": annotations}})
    stranger = {
        "instanceId": "stranger",
        "hostName": "stranger",
        "app": "STRANGER",
        "ipAddr": "10.9.9.9",
        "status": "UP",
        "homePageUrl": f"http://x/{PLANTED}",
        "metadata": {"anything": PLANTED},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
    }
    town.register("STRANGER", stranger)


def test_no_secret_is_in_a_record_and_equal_secrets_stay_equal(tmp_path: Path) -> None:
    """So the plan is the same, before and after such a value changes. Other values stay as they
    are."""
    night = Night(tmp_path)
    secret(night.town)
    kinds: list[list[str]] = []
    for number in range(3):
        if number == 2:
            spec = {"metadata": {"user.password": f"{PLANTED}-2"}}
            night.town.ask(
                "PATCH", "/apis/eurekube.io/v1/namespaces/team/eurekasyncers/app0", {"spec": spec}
            )
        report = night.town.good()
        record = decoded(encoded(night.town.recording.of(report, ExitCode.OK)))
        text = encoded(record).decode()
        assert PLANTED not in text
        assert ("hidden-0" in text, '"blue"' in text) == (True, True)
        again = night.again(record)
        assert again == list(record.decided)
        kinds.append([kind for kind, *_ in again])
    assert kinds == [["update", "update"], [], ["update", "update"]]


@pytest.mark.parametrize("value", ["record", "app0", "register", "eurekube.io/report/v1", "app"])
@pytest.mark.parametrize("key", ["author", "user.password"])
def test_text_that_others_write_does_not_falsify_a_record(
    tmp_path: Path, key: str, value: str
) -> None:
    """It is hidden under its own key and nowhere else. The name `author` is no secret key. A value
    that a label has is not hidden."""
    night = Night(tmp_path)
    path = "/apis/eurekube.io/v1/namespaces/team/eurekasyncers/app0"
    night.town.ask("PATCH", path, {"spec": {"metadata": {key: value}}})
    record = decoded(encoded(night.town.recording.of(night.town.good(), ExitCode.OK)))
    assert night.again(record) == list(record.decided)
    assert [kind for kind, *_ in record.decided] == ["update", "update"]
    hidden = key == "user.password" and value != "app0"
    assert (f'"{key}":"{value}"' in encoded(record).decode()) is not hidden


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_record_has_the_host_ports_of_pods_and_no_variable_of_theirs(kind: str) -> None:
    """A pass that is made again registers the same at the pods' nodes."""
    port = {"containerPort": 8080, "hostPort": 30080, "hostIP": "10.9.0.1"}
    variables = [{"name": "PASSWORD", "value": PLANTED}]
    container = {"name": "app", "args": [PLANTED], "env": variables, "ports": [port]}
    spec = {kind: [container, {"name": "side"}], "hostNetwork": True, "volumes": [PLANTED]}
    status = {"hostIP": "10.9.0.1", "hostIPs": [{"ip": "10.9.0.1"}], "message": PLANTED}
    pod = {"metadata": {"uid": "1", "name": "pod"}, "spec": spec, "status": status}
    read = msgspec.convert(pod, PodHostItem).read()
    Hiding({"/api/v1/namespaces/shop/pods": [pod]}, [], ["town"]).read()
    assert PLANTED not in json.dumps(pod)
    assert msgspec.convert(pod, PodHostItem).read() == read
    assert (read.host_network, read.ports[8080].number) == (True, 30080)


def test_objects_of_any_form_are_kept(night: Night) -> None:
    """A damaged object makes no pass fail, and no record of it."""
    odd: list[Any] = [
        7,
        "x",
        {},
        {"metadata": 5, "spec": []},
        {"spec": {"containers": 5, "initContainers": [3, {"ports": 7}]}},
        {"metadata": {"labels": 3, "annotations": []}},
    ]
    odd += [
        {
            "metadata": {"annotations": {"a": 5}},
            "spec": {"metadataFrom": [3, {"key": 5}], "metadata": {"token": 9}},
        }
    ]
    paths = (
        "/apis/eurekube.io/v1/eurekasyncers",
        "/api/v1/pods",
        "/apis/x/customresourcedefinitions/y",
    )
    hiding = Hiding(dict.fromkeys(paths, odd), [], ["town"])
    hiding.read()
    hiding.report({"messages": odd, "field": "metadata.x"})
