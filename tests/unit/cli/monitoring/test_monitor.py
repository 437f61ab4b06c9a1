"""The monitor of a process: counters grow, gauges follow the last pass, and a loop that stops is
noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from eurekube_sync.cli.monitoring import exposition
from eurekube_sync.cli.monitoring.metrics import KEPT_PASSES, METRICS, Monitor, Seen
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.model.struct import replace
from tests.trickling import NEVER_ENDING_HEAD, SOON_SECONDS, Stopwatch, trickling
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld


@pytest.fixture
def world() -> FakeWorld:
    found = FakeWorld()
    found.cluster.apply(syncer(), service(), piece(endpoint(1), endpoint(2)))
    return found


@pytest.fixture
def monitor(world: FakeWorld) -> Monitor:
    return Monitor(world.clock, "shop", "all", allowed=100)


def samples(monitor: Monitor) -> dict[str, float]:
    """Return the samples as a scrape reads them."""
    text = exposition.text(monitor).decode()
    return {
        sample.name
        + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_counters_grow_and_gauges_follow(world: FakeWorld, monitor: Monitor) -> None:
    """There are two passes and two counted calls."""
    monitor.passed(world.run(), ExitCode.OK, "2 registered", 0.3)
    monitor.called(Server.EUREKA, "", "200")
    monitor.called(Server.EUREKA, "", "200")
    monitor.passed(world.run(), ExitCode.OK, "in sync", 200)
    found = samples(monitor)
    assert found["eurekube_sync_instances,app=RATING,state=UP"] == 2
    assert found["eurekube_sync_actions_total,kind=Register,result=Done"] == 2
    assert found["eurekube_sync_actions_total,kind=Renew,result=Done"] == 2
    assert found["eurekube_sync_calls_total,code=200,server=Eureka"] == 2
    assert found["eurekube_sync_passes_total,result=OK"] == 2
    assert found["eurekube_sync_pass_duration_seconds_bucket,le=0.25"] == 0
    assert found["eurekube_sync_pass_duration_seconds_bucket,le=0.5"] == 1
    assert found["eurekube_sync_pass_duration_seconds_bucket,le=+Inf"] == 2
    assert found["eurekube_sync_pass_duration_seconds_sum"] == 200.3
    assert found["eurekube_sync_last_good_pass_timestamp_seconds,scope=all"] == world.clock.now()
    assert "eurekube_sync_lock_held,scope=all" not in found


def test_durations_begin_at_zero(monitor: Monitor) -> None:
    """A rate needs a value before the first pass. A standby copy makes no pass."""
    found = samples(monitor)
    assert found["eurekube_sync_pass_duration_seconds_bucket,le=0.1"] == 0
    assert found["eurekube_sync_pass_duration_seconds_count"] == 0


def test_an_app_that_is_gone_has_no_value_any_more(world: FakeWorld, monitor: Monitor) -> None:
    """A good pass removes its value. A pass that cannot read Eureka keeps it."""
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    registry, world.registry.unreadable = None, Unknown(cause=Cause.UNAVAILABLE, message="no")
    monitor.passed(world.run(), ExitCode.EUREKA_UNREAD, "", 1)
    assert samples(monitor)["eurekube_sync_instances,app=RATING,state=UP"] == 2
    world.registry.unreadable = registry
    world.registry.held.clear()
    world.cluster.syncers.clear()
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    assert not [name for name in samples(monitor) if name.startswith("eurekube_sync_instances")]


def kept(monitor: Monitor) -> tuple[Seen | None, Seen | None]:
    """What the page has: of the last pass that knew the syncers, and of the last."""
    return monitor.known, monitor.latest


def test_the_report_of_the_last_pass_that_knew_the_syncers_is_kept(world: FakeWorld) -> None:
    """A pass that could not read them hides nothing. A good pass without syncers does know them."""
    monitor = Monitor(world.clock, "shop", "all", allowed=100, keeps_reports=True)
    report = world.run()
    monitor.passed(report, ExitCode.OK, "", 1)
    world.cluster.syncers.clear()
    blind = replace(world.run(), all_statuses={})
    monitor.passed(blind, ExitCode.KUBERNETES_UNREAD, "", 1)
    known, latest = kept(monitor)
    assert known is not None
    assert latest is not None
    assert (known.report, latest.report) == (report, blind)
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    known, latest = kept(monitor)
    assert known is latest
    monitor.waits()
    assert kept(monitor) == (None, None)


def test_without_a_page_no_report_is_kept(world: FakeWorld, monitor: Monitor) -> None:
    """A report takes memory until the next one."""
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    assert kept(monitor) == (None, None)


def test_the_loop_is_alive_while_it_turns(world: FakeWorld, monitor: Monitor) -> None:
    """The results of its passes do not matter."""
    assert (monitor.live, monitor.ready) == (True, False)
    lives = []
    for seconds in (100, 1):
        world.later(seconds)
        lives.append(monitor.live)
    assert lives == [True, False]
    monitor.turned()
    assert (monitor.live, monitor.ready) == (True, False)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no")
    monitor.passed(world.run(), ExitCode.EUREKA_UNREAD, "", 1)
    assert (monitor.live, monitor.ready) == (True, True)


def test_a_copy_that_waits_is_ready_and_shows_no_instances(
    world: FakeWorld, monitor: Monitor
) -> None:
    """It shows the time of the last good pass, whichever copy made it. An older time does not
    replace a newer one."""
    monitor.has_lock("a/b", lambda: False)
    monitor.waits()
    assert monitor.ready
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    good = world.clock.now()
    monitor.was_good(good - 60)
    monitor.waits()
    found = samples(monitor)
    assert found["eurekube_sync_last_good_pass_timestamp_seconds,scope=all"] == good
    assert found["eurekube_sync_lock_held,scope=all"] == 0
    assert not [name for name in found if name.startswith("eurekube_sync_instances")]
    monitor.was_good(good + 60)
    assert samples(monitor)["eurekube_sync_last_good_pass_timestamp_seconds,scope=all"] == good + 60


def test_only_the_last_passes_are_kept(world: FakeWorld, monitor: Monitor) -> None:
    """The newest comes first."""
    for number in range(KEPT_PASSES + 5):
        monitor.passed(world.run(), ExitCode.OK, f"pass {number}", 1)
    shown = [one.summary for one in monitor.passes]
    assert (len(shown), shown[0]) == (KEPT_PASSES, f"pass {KEPT_PASSES + 4}")


def test_no_label_is_one_that_prometheus_gives_to_the_scraped_pod() -> None:
    """A scrape renames it to `exported_namespace` and the like, and a rule would then read the
    pod's own."""
    of_targets = {"namespace", "pod", "container", "endpoint", "service", "node", "job", "instance"}
    for metric in METRICS:
        assert not of_targets.intersection(metric.labels), metric.name


def test_names_and_helps_are_well_made() -> None:
    """These are the rules of promtool check metrics: base units, counters with _total, and unique
    names."""
    names = [one.name for one in METRICS]
    assert len(set(names)) == len(names)
    for one in METRICS:
        assert one.name.startswith("eurekube_sync_")
        assert one.name.endswith("_total") == (one.kind == "counter")
        assert not one.name.endswith(("_count", "_sum", "_bucket", "_milliseconds", "_minutes"))
        assert one.help.endswith(".")


def test_the_file_is_for_the_textfile_collector(
    world: FakeWorld, monitor: Monitor, tmp_path: Path
) -> None:
    """It lacks the metrics of the process. The next process reads the time of the last good pass
    from it."""
    path = tmp_path / "sync.prom"
    assert exposition.good_in_file(path) is None
    path.write_text("# no pass was good yet\n")
    assert exposition.good_in_file(path) is None
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    exposition.write_file(monitor, path)
    text = path.read_text()
    assert "process_" not in text
    assert "eurekube_sync_instances" in text
    assert exposition.good_in_file(path) == world.clock.now()
    assert [file.name for file in tmp_path.iterdir()] == ["sync.prom"]


def test_a_file_that_cannot_be_written_is_logged(
    monitor: Monitor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure of the metrics must not end a pass."""
    exposition.write_file(monitor, tmp_path / "none" / "x.prom")
    assert "x.prom: No such file or directory" in caplog.text


@pytest.mark.loopback
def test_a_push_adds_to_what_is_there(
    world: FakeWorld, monitor: Monitor, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a POST under job, owner and scope, so metrics without a value stay. A failed push is
    logged."""
    calls: list[Request] = []

    def gateway(request: Request) -> Response:
        calls.append(request)
        return Response(status=202)

    monitor.passed(world.run(), ExitCode.OK, "", 1)
    with LoopbackServer(gateway) as server:
        exposition.push(monitor, server.url, {"owner": "shop", "scope": "-n shop"})
        url = server.url
    (call,) = calls
    assert call.method == "POST"
    assert call.path.startswith("/metrics/job/eurekube-sync/")
    assert b"eurekube_sync_passes_total" in call.body
    assert b"process_" not in call.body
    exposition.push(monitor, url, {})
    assert f"cannot push metrics to {url}: " in caplog.text


@pytest.mark.loopback
def test_a_push_that_is_answered_byte_by_byte_delays_no_pass(
    monitor: Monitor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such an answer is never silent. A wait for its end would let leases expire."""
    monkeypatch.setattr(exposition, "PUSH_SECONDS", 0.5)
    with trickling(NEVER_ENDING_HEAD) as server:
        watch = Stopwatch()
        exposition.push(monitor, server.url, {})
        assert watch.seconds < SOON_SECONDS
    assert f"cannot push metrics to {server.url}: no answer in time" in caplog.text
