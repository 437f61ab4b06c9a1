"""The report of a pass: what it shows, in which order, and what it says about failed reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.passes import as_data, pass_markdown, pass_table
from eurekube_sync.cli.output.report import summary
from eurekube_sync.cli.output.table import Diff, console_for, rows_of
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.desired.spec import DRAIN_ANNOTATION
from eurekube_sync.model.errors import RegistryUnavailable, RegistryUnusable
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.kubernetes import unread
from eurekube_sync.plan.value import Blocked, Obstacle
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import (
    CLUSTER,
    NS,
    OWNER,
    endpoint,
    foreign,
    instance,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

AWAY = Unknown(cause=Cause.UNAVAILABLE, message="the connection was refused")


def lines(report: PassReport, *, columns: int | None = None) -> list[str]:
    """The report's lines, for a pipe or for a terminal of this width."""
    stream = io.StringIO()
    console_for(stream, width=columns).print(pass_table(report, at_terminal=columns is not None))
    return stream.getvalue().splitlines()


@pytest.fixture
def world() -> FakeWorld:
    """Ten registered apps of three pods each, `app0` to `app9`."""
    world = FakeWorld()
    for number in range(10):
        add_app(world, f"app{number}", 0)
        three = (endpoint(10 * number + pod) for pod in range(1, 4))
        world.cluster.apply(piece(*three, service=f"app{number}"))
    world.run()
    world.later(60)
    return world


def crowd(world: FakeWorld, pods: int) -> None:
    """Add this many pods to an app that comes first by name, and remove a pod of the last app."""
    add_app(world, "aaa", 0)
    many = (endpoint(1000 + number) for number in range(pods))
    world.cluster.apply(
        piece(*many, service="aaa"), piece(endpoint(91), endpoint(92), service="app9")
    )


def test_nothing_is_cut_where_no_person_looks(world: FakeWorld) -> None:
    """A file and the data of JSON have each registration and each syncer with a fault."""
    crowd(world, 300)
    for number in range(30):
        world.cluster.apply(syncer(f"team-{number:02}", selector={"app": "none"}))
    shown = lines(world.run(dry_run=True))
    assert sum(" +  " in line for line in shown) == 300
    assert [line.split(":")[0] for line in shown if "NoMatchingService" in line] == [
        f"! syncer {NS}/team-{number:02}" for number in range(30)
    ]
    messages = as_data(world.run(dry_run=True), ExitCode.OK)["messages"]
    assert sum("NoMatchingService" in message for message in messages) == 30


def test_a_file_gets_the_columns_of_a_terminal(world: FakeWorld) -> None:
    """The file is written without rich. Letters that take two columns count as two."""
    crowd(world, 3)
    rows = rows_of(world.run())
    rows.append(replace(rows[0], app="ZZZ", why="服务", syncer=""))
    written = []
    for terminal in (True, False):
        stream = io.StringIO()
        Console(file=stream, force_terminal=terminal, color_system=None, width=500).print(
            Diff(rows), crop=False
        )
        written.append(stream.getvalue())
    assert written[0] == written[1]


def test_a_terminal_cuts_registrations_alone_and_says_how_many(world: FakeWorld) -> None:
    """The only cancel comes first, although its app is the last by name."""
    crowd(world, 300)
    shown = lines(world.run(dry_run=True), columns=120)
    assert "APP9" in shown[1]
    assert "UP > gone" in shown[1]
    assert sum(" +  " in line for line in shown) == 200
    assert "... and 100 more to register; -o json has them all" in shown
    assert shown[-1] == "dry run: 300 to register, 1 to cancel, 29 to renew"


def test_a_terminal_shows_many_syncers_of_one_reason_in_one_sentence(world: FakeWorld) -> None:
    """The sentence has three names and one whole message. Three syncers of a reason are still shown
    one by one."""
    for number in range(30):
        world.cluster.apply(syncer(f"team-{number:02}", selector={"app": "none"}))
    for number in range(3):
        world.cluster.apply(syncer(f"port-{number}", selector={"app": "app1"}, port="grpc"))
    shown = [line for line in lines(world.run(dry_run=True), columns=400) if line.startswith("!")]
    assert len(shown) == 4
    (gathered,) = (line for line in shown if "NoMatchingService" in line)
    assert gathered.startswith(
        f"! NoMatchingService: 30 syncers: {NS}/team-00, {NS}/team-01, {NS}/team-02 and 27 more "
        "(-o json has each); "
        f"the first: no Service in namespace {NS} matches"
    )


def test_dangerous_rows_come_first(world: FakeWorld) -> None:
    """Failures come first, then cancels, changes to DOWN and conflicts. Registrations come last."""
    add_app(world, "aaa", 0)
    world.cluster.apply(
        piece(endpoint(200), endpoint(201), endpoint(202), service="aaa"),
        piece(endpoint(1), endpoint(2), service="app0"),
        piece(endpoint(11), endpoint(12), endpoint(13, ready=False), service="app1"),
    )
    taken = instance(200, app="aaa").key
    world.registry.put(foreign(taken.id, app="AAA"))
    world.registry.refuse[instance(201, app="aaa").key] = RegistryUnusable("answered 400")
    signs = [
        line[6]
        for line in lines(world.run())
        if line[6:8].strip() in ("!", "=", "-", "~", "x", "+")
    ]
    assert signs == ["!", "-", "~", "x", "+"]


def test_an_id_of_very_many_digits_is_a_row(world: FakeWorld) -> None:
    """Python converts no number of more than 4300 digits, and anybody may register such a name."""
    key = InstanceKey("RATING", "9" * 5000)
    blocked = Blocked(
        key=key, syncer=SyncerRef(NS, "rating"), why="it is taken", obstacle=Obstacle.TAKEN
    )
    report = world.run(dry_run=True)
    report = replace(report, plan=replace(report.plan, blocked=(blocked,)))
    assert any(key.id in line for line in lines(report))


def test_held_removals_of_one_text_are_one_row_at_a_terminal() -> None:
    """A file has a row for each."""
    world = FakeWorld()
    for number in range(8):
        add_app(world, f"app{number}", 0)
        four = (endpoint(10 * number + pod) for pod in range(1, 5))
        world.cluster.apply(piece(*four, service=f"app{number}"))
    world.run()
    for number in range(6):
        world.cluster.apply(piece(service=f"app{number}"))
    report = world.run(dry_run=True)
    assert report.held is not None
    rows = [line for line in lines(report, columns=120) if "HELD" in line]
    assert len(rows) == 6
    assert rows[0].split()[:6] == ["APP0", "=", "4", "instances", "UP", ">"]
    assert sum("HELD" in line for line in lines(report)) == 24


def test_a_long_reason_wraps_its_own_row_alone(world: FakeWorld) -> None:
    """The other rows stay on one line each."""
    crowd(world, 5)
    long = f"{instance(1000, app='AAA').key.id} is held by " + "a stranger with a long name " * 5
    report = world.run(dry_run=True)
    shown = lines(report, columns=130)
    assert sum(" +  " in line for line in shown) == 5
    first, *rest = report.plan.changes
    plan = replace(report.plan, actions=(replace(first, why=long), *rest))
    wrapped = lines(replace(report, plan=plan), columns=130)
    assert sum(" +  " in line for line in wrapped) == 5
    assert len(wrapped) > len(shown)
    assert wrapped[0].startswith("APP")
    assert all(len(line) <= 130 for line in wrapped)


def test_a_conflict_is_reported_once(world: FakeWorld) -> None:
    """Its row in the table reports it. The messages of JSON have a sentence for each conflict."""
    crowd(world, 2)
    taken = instance(1000, app="aaa").key
    world.registry.put(foreign(taken.id, app="AAA"))
    report = world.run(dry_run=True)
    assert sum("is registered with the id that ours needs" in line for line in lines(report)) == 1
    assert any(
        "is registered with the id that ours needs" in message
        for message in as_data(report, ExitCode.OK)["messages"]
    )


def eureka(world: FakeWorld) -> None:
    """Eureka's list fails."""
    world.registry.unreadable = AWAY


def whole(world: FakeWorld) -> None:
    """The cluster's identity cannot be read."""
    world.cluster.uid = AWAY


def both(world: FakeWorld) -> None:
    """Neither server answers."""
    eureka(world)
    whole(world)


def part(world: FakeWorld) -> None:
    """One list of the cluster fails."""
    world.cluster.unknown["slices", NS] = AWAY


def again(world: FakeWorld) -> None:
    """An instance that would change cannot be read again."""
    world.cluster.apply(piece(endpoint(1), endpoint(2), service="app0"))
    world.registry.refuse_read[instance(3, app="app0").key] = RegistryUnavailable("timeout")


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (eureka, ": Eureka could not be read, so changes are unknown"),
        (whole, ": Kubernetes could not be read, so changes are unknown"),
        (both, ": Eureka and Kubernetes could not be read, so changes are unknown"),
        (
            part,
            ", not all changes are known: nothing to change, 30 to renew; 10 syncers not served, "
            "1 source of ",
        ),
        (
            again,
            ", not all changes are known: nothing to change, 30 to renew; 1 not changed, because "
            "not read again",
        ),
    ],
)
def test_a_dry_run_that_could_not_look_says_so(
    world: FakeWorld, what: Callable[[FakeWorld], None], expected: str
) -> None:
    """It does not say what would change. In JSON, owner and cluster are the given and the seen
    ones."""
    what(world)
    report = world.run(dry_run=True)
    data = as_data(report, ExitCode.OK)
    assert summary(report).startswith(f"dry run incomplete{expected}")
    assert (data["summary"], data["owner"]) == (summary(report), OWNER)
    assert data["cluster"] == (None if what in (whole, both) else CLUSTER)


def test_in_sync_is_said_when_all_of_it_was_seen(world: FakeWorld) -> None:
    """It is not said while a syncer is suspended, or after a failed list."""
    assert summary(world.run()) == "in sync, 30 renewed"
    world.cluster.apply(syncer("app0", selector={"app": "app0"}, suspend=True))
    assert summary(world.run()) == "nothing changed, 30 renewed"
    eureka(world)
    assert summary(world.run()).startswith("nothing changed")


def test_a_list_that_failed_for_two_purposes_is_named_once(world: FakeWorld) -> None:
    """Pods are listed for labels, and for readiness gates."""
    label = [{"key": "version", "podLabel": "version"}]
    world.cluster.apply(
        syncer("app0", selector={"app": "app0"}, readinessGate=True, metadataFrom=label)
    )
    world.cluster.unknown["pods", NS] = world.cluster.unknown["readiness", NS] = AWAY
    report = world.run()
    assert [failed.name for failed in unread(report.view)] == [f"Pods of {NS}"]
    assert [line for line in lines(report) if "Pods" in line] == [f"! Pods of {NS}: {AWAY.message}"]
    assert [one["source"] for one in as_data(report, ExitCode.OK)["unknown"]] == [f"Pods of {NS}"]


def test_a_warning_that_quotes_an_error_is_told_beside_the_error(world: FakeWorld) -> None:
    """Somebody wrote the words of an error into an annotation."""
    (plain,) = (one for one in world.cluster.services if one.name == "app0")
    world.cluster.apply(replace(plain, annotations={DRAIN_ANNOTATION: AWAY.message}))
    world.cluster.unknown["pods", NS] = AWAY
    label = [{"key": "version", "podLabel": "version"}]
    world.cluster.apply(syncer("app1", selector={"app": "app1"}, metadataFrom=label))
    shown = "\n".join(lines(world.run()))
    assert f"Pods of {NS}: {AWAY.message}" in shown
    assert f"annotation {DRAIN_ANNOTATION}: {AWAY.message!r} is ignored" in shown


def test_a_terminal_gets_a_legend_of_the_signs_that_it_sees(world: FakeWorld) -> None:
    """It is below the rows and above the messages. A pipe gets none."""
    crowd(world, 2)
    assert lines(world.run(dry_run=True), columns=200)[-2] == "- cancel   + register"
    assert not [line for line in lines(world.run(dry_run=True)) if line.endswith("+ register")]


def test_a_syncer_that_is_drained_in_part_says_so(world: FakeWorld) -> None:
    """It also says so when its instances have been DOWN for long, and no row shows them."""
    drained = replace(
        service("app0-more", labels={"app": "app0"}), annotations={"eurekube.io/drain": "true"}
    )
    world.cluster.apply(
        drained,
        piece(endpoint(300), service="app0-more"),
    )
    for _ in range(2):
        report = world.run()
        world.later(60)
    (line,) = note(report, "app0")
    assert line.startswith(f"i syncer {NS}/app0: Drained: 1 of 4 instances: ")
    assert (entry(report, "app0")["desired"], entry(report, "app0")["up"]) == (4, 3)


def test_markdown_has_the_dangerous_rows_first_and_whole(world: FakeWorld) -> None:
    """Held rows are folded, and registrations are below a heading. No text of others becomes markup
    or mentions a person."""
    crowd(world, 2)
    world.cluster.apply(
        syncer("odd", selector={"app": "<b>|@all"}),
        *(piece(service=f"app{number}") for number in range(5)),
    )
    world.brake = BrakeLimits(loss_floor=2)
    report = world.run(dry_run=True)
    text = pass_markdown(report)
    heading, _, *rest = text.splitlines()
    assert heading == f"### eurekube-sync: {summary(report)}".replace("~", "\\~")
    assert report.held is not None
    assert rest[2].startswith(
        "| `=` | APP0 | prod:rating:app0:10.0.0.1:8080 | UP \\> gone | HELD: "
    )
    assert rest.index("<details><summary>2 to register</summary>") > max(
        number for number, line in enumerate(rest) if line.startswith("| `=`")
    )
    assert "<b>" not in text
    assert "@all" not in text
    assert "`=` held by the brake, `+` register" in text
    assert f"owner `{OWNER}`, cluster {CLUSTER}, " in rest[-1]


def test_a_cluster_id_is_no_markup(world: FakeWorld) -> None:
    """The author of a `--from` file, or of an instance in Eureka, may have put any text there."""
    report = replace(world.run(dry_run=True), cluster="`<b>\n# x")
    assert r", cluster \`\<b\>\\x0a\# x, " in pass_markdown(report).splitlines()[-1]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("&#64;all &lt;", "&amp;\\#64;all &amp;lt;"),
        ("http://evil.example", "http:\u200b//evil.example"),
        ("WWW.evil.example", "WWW\u200b.evil.example"),
        ("joe@evil.example @-all", "joe@\u200bevil.example @\u200b-all"),
    ],
)
def test_text_that_others_wrote_is_no_link(world: FakeWorld, written: str, shown: str) -> None:
    """GitHub and GitLab read character references, and make links and mentions of plain words."""
    report = replace(world.run(dry_run=True), cluster=written)
    assert f", cluster {shown}, " in pass_markdown(report).splitlines()[-1]


def test_markdown_fits_into_a_comment(world: FakeWorld) -> None:
    """Only registrations are cut, with their number. Every removal is shown."""
    crowd(world, 2000)
    text = pass_markdown(world.run(dry_run=True))
    assert len(text) < 65_536
    assert "| `-` | APP9 | " in text
    shown = text.count("| `+` |")
    assert f"... and {2000 - shown} more; `-o json` has them all" in text
    crowd(world, 20)
    assert "more; `-o json`" not in pass_markdown(world.run(dry_run=True))


def test_held_and_blocked_are_lists(world: FakeWorld) -> None:
    """They are empty where nothing is held or blocked, so a program need not test for them."""
    data = as_data(world.run(dry_run=True), ExitCode.OK)
    assert (data["held"], data["holds"], data["blocked"]) == ([], [], [])


def note(report: PassReport, name: str) -> list[str]:
    """The report's notes about a syncer."""
    return [line for line in lines(report) if line.startswith(f"i syncer {NS}/{name}: ")]


def entry(report: PassReport, name: str) -> dict[str, Any]:
    """The entry of a syncer in JSON."""
    (found,) = (
        one for one in as_data(report, ExitCode.OK)["syncers"] if one["syncer"] == f"{NS}/{name}"
    )
    return dict(found)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_syncer_that_comes_to_nothing_says_why(world: FakeWorld, dry_run: bool) -> None:
    """The report and JSON give the reason. The counts are as for every syncer."""
    world.cluster.apply(
        syncer("unready", selector={"app": "unready"}),
        service("unready", labels={"app": "unready"}),
        piece(endpoint(200, ready=False), service="unready"),
        syncer("empty", selector={"app": "empty"}),
        service("empty", labels={"app": "empty"}),
        piece(service="empty"),
        syncer("app1", selector={"app": "app1"}, suspend=True),
        piece(endpoint(21), endpoint(22), service="app2"),
        syncer("other", selector={"app": "app3"}, syncerClass="internal"),
    )
    world.run()
    report = world.run(dry_run=dry_run)
    for name, reason, message in (
        ("unready", "NotReady", "pod rating-200 is not ready"),
        ("empty", "NoEndpoints", "Service empty has no endpoints"),
        ("app1", "Suspended", "its instances are renewed, and not changed"),
    ):
        assert note(report, name) == [f"i syncer {NS}/{name}: {reason}: {message}"]
        assert (entry(report, name)["reason"], entry(report, name)["message"]) == (reason, message)
    other = "spec.syncerClass is internal, and this installation serves syncers without a class"
    assert note(report, "other") == (
        [f"i syncer {NS}/other: OtherClass: {other}"] if dry_run else []
    )
    assert (entry(report, "other")["state"], entry(report, "other")["reason"]) == (
        "notServed",
        "OtherClass",
    )
    whole = entry(report, "app0")
    assert (whole["desired"], whole["up"], whole["ready"], whole["reason"]) == (3, 3, 3, "InSync")
    assert [entry(report, "unready")[count] for count in ("desired", "up", "ready")] == [1, 0, 0]
    assert [entry(report, "other")[count] for count in ("desired", "up", "ready")] == [
        None,
        None,
        None,
    ]


def test_pods_that_are_not_ready_are_reported_beside_ready_ones(world: FakeWorld) -> None:
    """The pass that turns one DOWN has a row for it. Later passes have a note."""
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3, ready=False), service="app0"))
    first = world.run()
    assert note(first, "app0") == []
    assert any("pod rating-3 is not ready" in line for line in lines(first))
    again = world.run()
    assert note(again, "app0") == [f"i syncer {NS}/app0: NotReady: pod rating-3 is not ready"]
    assert summary(again) == "in sync, 30 renewed"
    status = world.cluster.syncers[SyncerRef(NS, "app0")].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert ready.message == "2 of 3 UP as APP0; pod rating-3 is not ready"


def test_a_syncer_that_cancels_unready_pods_reports_them(world: FakeWorld) -> None:
    """With `notReady: Cancel` an unready pod is not desired. A fully drained Service names what
    drains it."""
    world.cluster.apply(syncer("app0", selector={"app": "app0"}, notReady="Cancel"))
    world.cluster.apply(piece(endpoint(1, ready=False), endpoint(2, ready=False), service="app0"))
    drained = replace(
        service("app1", labels={"app": "app1"}), annotations={"eurekube.io/drain": "true"}
    )
    world.cluster.apply(drained)
    world.cluster.apply(piece(endpoint(21, ready=False, terminating=True), service="app2"))
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, confirm_after=0)
    world.run()
    report = world.run()
    assert note(report, "app0")[0].endswith("NotReady: pod rating-1 is not ready (and 1 more)")
    assert note(report, "app1")[0].endswith(
        "Drained: Service app1 has the annotation eurekube.io/drain"
    )
    assert note(report, "app2")[0].endswith("NoEndpoints: all endpoints of Service app2 terminate")


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(namespaces=frozenset({"nosuch"})), "namespace nosuch does not exist"),
        (
            Scope(namespaces=frozenset({"nosuch", "norsuch"})),
            "namespace norsuch does not exist and namespace nosuch does not exist",
        ),
        (Scope(namespaces=frozenset({"idle"})), "there is none in idle"),
        (Scope(syncer_class="nope"), "no syncer has class nope"),
        (
            Scope(selector=parse_selector("team in (a, b),!old")),
            "--selector team in (a, b),!old selects none of the 10 syncers",
        ),
    ],
)
def test_a_scope_without_a_syncer_says_why(world: FakeWorld, scope: Scope, expected: str) -> None:
    """A typing error must not look like a cluster in sync. It is no failure either."""
    world.cluster.namespaces = Complete(data=frozenset({NS, "idle"}))
    world.scope = scope
    for dry_run in (True, False):
        report = world.run(dry_run=dry_run)
        assert f"! no EurekaSyncer in scope ({expected})" in lines(report)
        assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK


def test_other_scopes_without_a_syncer(world: FakeWorld) -> None:
    """Labels that no syncer has, syncers that all have a class, and a cluster without syncers."""
    world.scope = Scope(namespaces=frozenset({NS}), selector=parse_selector("team=nobody"))
    (told,) = [line for line in lines(world.run(dry_run=True)) if "in scope" in line]
    assert (
        told
        == f"! no EurekaSyncer in scope (-n {NS} --selector team=nobody selects none of the 10 "
        "syncers)"
    )
    world.scope = Scope(namespaces=frozenset({NS, "nosuch"}))
    assert "! namespace nosuch does not exist" in lines(world.run(dry_run=True))
    empty = FakeWorld()
    assert "! no EurekaSyncer in scope (there is none in the cluster)" in lines(empty.run())
    empty.cluster.apply(syncer(syncerClass="edge"))
    (told,) = [line for line in lines(empty.run()) if "in scope" in line]
    assert told.endswith("(each has a class, such as edge; serve it with --syncer-class)")
    empty.cluster.unknown["syncers", "*"] = AWAY
    assert not any("in scope" in line for line in lines(empty.run())), "nobody knows"


def test_the_command_that_releases_carries_its_scope() -> None:
    """The report, the condition and the event have it. In another scope the plan id differs."""
    world = FakeWorld()
    add_app(world, "app0", 0)
    world.cluster.apply(piece(*(endpoint(number) for number in range(20)), service="app0"))
    world.scope = Scope(
        namespaces=frozenset({NS}),
        selector=parse_selector("!old,tier notin (a, b)"),
        allowed=frozenset({("a", "*")}),
    )
    world.run()
    world.cluster.apply(piece(endpoint(1), service="app0"))
    report = world.run()
    assert report.held is not None
    command = (
        f"eurekube-sync run -n {NS} --selector '!old,tier notin (a, b)' --allow-namespace 'a:*' "
        f"--approve {report.held.plan_id}"
    )
    assert any(
        sentence.endswith(f"even while a daemon runs: {command}") for sentence in lines(report)
    )
    status = world.cluster.syncers[SyncerRef(NS, "app0")].status
    held = status.condition("RemovalHeld") if status else None
    assert held is not None
    assert held.message.endswith(command)
    assert any(event.message.endswith(command) for event in world.cluster.events)


def test_an_approval_of_nothing_is_reported_in_a_dry_run_too() -> None:
    """The exit code is that of the pass that it shows."""
    world = FakeWorld()
    add_app(world, "app0", 0)
    report = world.run(dry_run=True, approved="0123456789ab")
    assert "! --approve 0123456789ab: the plan has changed, so nothing was approved" in lines(
        report
    )
    assert of_report(report, fail_on_held=False, detailed=True) is ExitCode.REMOVAL_HELD


def test_a_broken_syncer_is_reported_and_does_not_fail_the_others(world: FakeWorld) -> None:
    """The pass is done for all other syncers. `status` has the exit code for this one."""
    world.cluster.apply(syncer("typo", selector={"app": "ap0"}))
    for dry_run in (True, False):
        report = world.run(dry_run=dry_run)
        assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK
    report = world.run(dry_run=True)
    assert sum("NoMatchingService" in line for line in lines(report)) == 1
