"""The status page: it shows the most important facts first, escapes text from others, stays small,
and needs no script."""

from __future__ import annotations

import base64
import gc
import hashlib
import re
from collections.abc import Iterable
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eurekube_sync.cli.monitoring.metrics import AT_RISK, INSTANCES, LOST, Monitor
from eurekube_sync.cli.monitoring.page import (
    MOST_CHARACTERS,
    MOST_ROWS,
    POLICY,
    Page,
    Query,
    parse_query,
)
from eurekube_sync.cli.monitoring.rows import State, rows_of
from eurekube_sync.cli.output.report import summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.docs import help_on, page
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    PodReadiness,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import CLUSTER, DENIED, NS, endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld
from tests.unit.worlds.imports import ImportWorld, dc, import_object

EVIL = "<script>alert('x')</script>\"&\x1b\u202e\u200b"
CROSS = "\u00d7"
ONE, TWO, THREE = (f"http://eureka-{number}/eureka" for number in (1, 2, 3))
_VOID = frozenset({"meta", "input", "br", "link"})


class Elements(HTMLParser):
    """What a page has. It checks that each element is closed, and that no id comes twice."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.names: list[str] = []
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fields: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs), f"{tag} has an attribute twice"
        assert "style" not in given, "the policy forbids it"
        assert not [name for name in given if name.startswith("on")], "a script"
        if "id" in given:
            assert given["id"] not in self.ids
            self.ids.add(given["id"] or "")
        if tag == "a":
            self.links.append(given["href"] or "")
        if tag in ("input", "select"):
            self.fields.add(given["name"] or "")
            assert "label" in self.open or given.get("type") == "hidden"
        if tag == "th":
            assert given["scope"] == "col"
        self.names.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def watch(world: FakeWorld) -> Monitor:
    monitor = Monitor(world.clock, "shop", "all", allowed=100, keeps_reports=True)
    monitor.uses([ONE, TWO, THREE])
    monitor.called(Server.KUBERNETES, "", "500")
    monitor.called(Server.EUREKA, ONE, "200")
    monitor.called(Server.EUREKA, TWO, "none")
    return monitor


def passed(world: FakeWorld, monitor: Monitor, code: ExitCode = ExitCode.OK) -> PassReport:
    """Make a pass, and tell the monitor."""
    report = world.run()
    monitor.passed(report, code, summary(report), 0.34)
    return report


def first(monitor: Monitor, query: str = "") -> str:
    """The first page, which is well made."""
    status, body = Page(monitor, interval=30).first(query)
    assert status == 200
    return checked(body)


def single(monitor: Monitor, path: str) -> str:
    status, body = Page(monitor).single(path)
    assert status == 200, body
    return checked(body)


def checked(body: bytes) -> str:
    """A page whose elements are right, and which needs nothing but itself."""
    text = body.decode()
    elements = Elements(text)
    assert not {"script", "img", "iframe", "link"} & set(elements.names)
    headings = [int(name[1]) for name in elements.names if re.fullmatch("h[1-6]", name)]
    assert headings[0] == 1
    assert max((after - before for before, after in pairwise(headings)), default=0) <= 1
    return text


def shown(html: str) -> str:
    """The words of a page, as a person reads them."""
    without_style = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", without_style)).split())


def in_order(text: str, parts: list[str]) -> None:
    """Each part comes after the one before."""
    for part in parts:
        before, found, text = text.partition(part)
        assert found, f"{part!r} is not in {before!r}"


def rows(html: str) -> list[list[str]]:
    """The cells of each row of syncers and imports."""
    found = []
    for row in re.findall(
        r'<td role="cell" class="name" data-name="Name">.*?</tr>', html, re.DOTALL
    ):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        found.append([shown(cell) for cell in cells])
    return found


def shop() -> FakeWorld:
    """One syncer that is in sync, one without a Service, one without a ready pod."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint(1), endpoint(2)))
    world.cluster.apply(syncer("cart", selector={"app": "cart"}))
    world.cluster.apply(service("cart", labels={"app": "carts"}))
    world.cluster.apply(
        syncer("geo", selector={"app": "geo"}),
        service("geo", labels={"app": "geo"}),
        piece(endpoint(11, ready=False), service="geo"),
    )
    return world


def select_nothing(world: FakeWorld) -> None:
    """The Services select nothing any more, while the pods run as before."""
    pods = []
    for slice_ in world.cluster.slices:
        for end in slice_.endpoints:
            assert end.pod is not None
            pods.append(end.pod)
            world.cluster.readiness[end.pod.uid] = PodReadiness(
                namespace=NS, name=end.pod.name, uid=end.pod.uid, ready=True, registered=False, running=True,
            )  # fmt: skip
    world.cluster.pods[NS] = tuple(pods)
    world.cluster.slices = [replace(slice_, endpoints=()) for slice_ in world.cluster.slices]


def test_before_the_first_pass() -> None:
    """Nothing is known, which is not the same as no syncer."""
    text = shown(first(watch(FakeWorld())))
    assert "No pass has ended yet" in text
    assert "not ready" not in text.partition("Last pass")[0]
    assert Page(watch(FakeWorld())).single("syncer/a/b").status == 404


def test_a_replica_that_waits_shows_no_syncers() -> None:
    """What it saw before it lost the lock is no longer so."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    monitor.waits()
    text = shown(first(monitor))
    assert "Another process is at work" in text
    assert "rating" not in text


def test_the_counts_come_first_then_passes_servers_and_rows() -> None:
    """A person reads on only if the first line says so."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    world.later(12)
    html = first(monitor)
    text = shown(html)
    order = [
        "2 of 3 syncers are not ready",
        "2 not ready",
        "1 ready",
        "instances UP: 2",
        "Last pass",
        "12 s ago",
        "0.3 s",
        "OK (0)",
        "2 registered, 0 renewed; 1 syncer not served",
        "Next pass in 18 s",
        f"Eureka {ONE} answered 200, 12 s ago",
        f"Eureka {TWO} gave no answer, 12 s ago",
        f"Eureka {THREE} was not asked yet",
        f"Cluster {CLUSTER}",
        "Scope all",
        "Version 0.1.0",
        "rating/cart",
        "rating/geo",
        "1 syncer in order",
        "rating/rating",
    ]
    in_order(text, order)
    assert "2 of 3 not ready" in html.partition("<title>")[2].partition("</title>")[0]


def test_a_row_has_state_reason_since_and_why() -> None:
    """With the label that the Service has, and the address of the help."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    world.later(125)
    html = first(monitor)
    cart, geo, rating = rows(html)
    assert cart == [
        "rating/cart",
        "",
        "0/0",
        f"{CROSS} not ready",
        "NoMatchingService",
        "2 min",
        "no Service in namespace rating matches app=cart: create it, or correct spec.selector; "
        "Service cart has app=carts",
    ]
    assert geo[:6] == ["rating/geo", "GEO", "0/1", f"{CROSS} not ready", "NotReady", "2 min"]
    assert rating[1:5] == ["RATING", "2/2", "√ ready", "InSync"]
    links = Elements(html).links
    assert help_on(Reason.NO_MATCHING_SERVICE) in links
    assert "syncer/rating/cart" in links
    assert page("troubleshooting") in links


def test_those_in_order_are_folded_and_the_others_are_not() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    html = first(monitor)
    before, _, folded = html.partition("<details>\n<summary>1 syncer in order")
    assert "rating/cart" in before
    assert "rating/rating" not in before
    assert "syncer/rating/rating" in folded


def test_what_is_held_has_its_plan_its_evidence_and_both_ways_out() -> None:
    """A person decides about it at night."""
    world = FakeWorld()
    apps = ("rating", "geo", "pay", "seat")
    for number, app in enumerate(apps):
        world.cluster.apply(
            syncer(app, selector={"app": app}),
            service(app, labels={"app": app}),
            piece(endpoint(10 * number + 1), endpoint(10 * number + 2), service=app),
        )
    monitor = watch(world)
    passed(world, monitor)
    select_nothing(world)
    passed(world, monitor)
    world.later(60)
    report = passed(world, monitor)
    assert report.held is not None
    world.later(60)
    html = first(monitor)
    text = shown(html)
    assert "8 removals wait" in text
    assert f"Plan id {report.held.plan_id}" in text
    assert "(2 min ago)" in text.partition("Since")[2].partition("Because")[0]
    assert report.held.reason in text
    evidence = report.held.evidence()
    assert evidence is not None
    assert evidence.sentence in text
    assert f"eurekube-sync run --approve {report.held.plan_id}" in text
    assert "eurekube-sync explain rating/geo" in text
    assert {f"syncer/rating/{app}" for app in apps} <= set(Elements(html).links)
    assert text.index("8 removals wait") < text.index("Last pass")
    assert page("brake") in Elements(html).links
    # The row tells of it before anything else of the syncer.
    assert {row[4] for row in rows(html)} == {"TooManyRemovals"}


def test_what_waits_for_a_second_pass_asks_nobody() -> None:
    """It has no evidence: nobody has to decide."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    select_nothing(world)
    report = passed(world, monitor)
    assert report.held is not None
    assert report.held.evidence() is None
    assert f"{len(report.held.removals)} removals wait" in shown(first(monitor))


def test_many_held_syncers_are_counted() -> None:
    world = FakeWorld()
    for number in range(12):
        app = f"app-{number:02}"
        world.cluster.apply(
            syncer(app, selector={"app": app}),
            service(app, labels={"app": app}),
            piece(endpoint(number), service=app),
        )
    monitor = watch(world)
    passed(world, monitor)
    select_nothing(world)
    passed(world, monitor)
    html = first(monitor)
    assert "and 4 more" in shown(html)
    assert "?state=RemovalHeld#syncers" in Elements(html).links
    assert len(rows(first(monitor, "state=RemovalHeld"))) == 12


def test_problems_of_the_whole_pass_have_their_help() -> None:
    """Such as a server that could not be read. Rows then are those of the last pass that knew
    them, which the page says."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    world.cluster.unknown["syncers", ""] = Unknown(cause=Cause.DENIED, message="403: grant list")
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    world.later(30)
    report = replace(world.run(), desired=None, all_statuses={})
    monitor.passed(report, ExitCode.EUREKA_UNREAD, "nothing changed", 1)
    html = first(monitor)
    text = shown(html)
    assert "EurekaUnavailable: " not in text  # no reason of ours
    assert "Problems of the last pass" in text
    assert "Eureka: no answer" in text
    assert "EUREKA_UNREAD (20)" in text
    assert "Later passes could not read the syncers." in text
    assert help_on(Cause.UNAVAILABLE) in Elements(html).links
    assert len(rows(html)) == 3
    assert "Later passes could not read the syncers." in shown(single(monitor, "syncer/rating/geo"))


def test_many_problems_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eurekube_sync.cli.monitoring.page._MOST_PROBLEMS", 1)
    world = shop()
    world.cluster.unknown["services", "*"] = DENIED
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    monitor = watch(world)
    passed(world, monitor, ExitCode.EUREKA_UNREAD)
    assert "1 more are in the log and in the report." in shown(first(monitor))


def test_passes_that_have_stopped_are_told() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    world.later(101)
    text = shown(first(monitor))
    assert "Passes have stopped." in text
    assert "due since 1 min" in text


@pytest.mark.parametrize(
    ("code", "mark"),
    [
        ("200", "good"),
        ("204", "good"),
        ("404", "good"),
        ("403", "bad"),
        ("503", "bad"),
        ("none", "bad"),
    ],
)
def test_a_server_shows_its_last_answer(code: str, mark: str) -> None:
    """404 is the right answer for an instance that is not there."""
    world = shop()
    monitor = watch(world)
    monitor.called(Server.EUREKA, THREE, code)
    monitor.uses([THREE, ONE])
    world.later(70)
    html = first(monitor)
    words = "gave no answer" if code == "none" else f"answered {code}"
    assert f'{THREE} <span class="{mark}">{words}, 1 min ago</span>' in html
    assert html.index(THREE) < html.index(ONE)
    assert TWO not in html


def test_a_single_pass_has_no_next_one() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    body = Page(monitor).first("").body.decode()
    assert "Next pass" not in shown(body)


def test_numbers_that_are_bad_are_marked() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    monitor._gauges = {
        INSTANCES: {("RATING", "UP"): 2.0, ("RATING", "DOWN"): 3.0, ("SHOP", "DOWN"): 1.0},
        LOST: {(): 1.0},
        AT_RISK: {(): 0.0},
    }
    html = first(monitor)
    assert "<li>instances UP: 2</li>" in html
    assert '<li class="bad">instances DOWN: 4</li>' in html
    assert '<li class="bad">apps without an UP instance: 1</li>' in html
    assert "leases at risk" not in html


def test_the_lock_is_shown() -> None:
    world = shop()
    monitor = watch(world)
    held = [True, False]
    monitor.has_lock("eurekube/shop", lambda: held[0])
    passed(world, monitor)
    assert "Lock eurekube/shop: held " in shown(first(monitor))
    del held[0]
    assert "Lock eurekube/shop: not held " in shown(first(monitor))


def test_passes_are_folded_behind_the_last() -> None:
    world = shop()
    monitor = watch(world)
    for number in range(4):
        monitor.passed(world.run(), ExitCode.OK, f"pass {number}", 1)
    html = first(monitor)
    last, _, earlier = html.partition("<summary>3 earlier</summary>")
    assert "pass 3" in last
    assert "pass 2" not in last
    assert "pass 0" in earlier


# --- The rows -------------------------------------------------------------------------------------


def only_row(world: FakeWorld, *, passes: int = 1) -> list[str]:
    monitor = watch(world)
    for _ in range(passes):
        passed(world, monitor)
        world.later(30)
    (row,) = rows(first(monitor))
    return row


def one(*things: SyncerObject, ready: int = 1, of: int = 1) -> FakeWorld:
    world = FakeWorld()
    ends = [endpoint(number, ready=number <= ready) for number in range(1, of + 1)]
    world.cluster.apply(*things, service(), piece(*ends))
    return world


def test_a_suspended_syncer_says_that_it_is() -> None:
    """And not that none of its instances is UP."""
    row = only_row(one(syncer(suspend=True)))
    assert row[4] == "Suspended"


def test_a_syncer_with_some_pods_up_needs_somebody() -> None:
    row = only_row(one(syncer(), ready=1, of=2))
    assert row[2:5] == ["1/2", "! ready, with a problem", "NotReady"]


def test_a_syncer_of_another_class_is_shown_and_not_counted() -> None:
    world = one(syncer(syncer_class="x"))
    world.cluster.syncers.clear()
    world.cluster.apply(syncer(syncerClass="other"), syncer("mine", selector={"app": "rating"}))
    monitor = watch(world)
    passed(world, monitor)
    html = first(monitor)
    assert "0 of 1 syncer is not ready" in shown(html)
    assert "1 of another class" in shown(html)
    other = rows(html)[-1]
    assert other[0] == "rating/rating"
    assert other[3:5] == ["- of another class", "OtherClass"]
    text = shown(single(monitor, "syncer/rating/rating"))
    assert "of another class" in text
    assert "What it needs" not in text


def test_a_deleted_syncer_stays_until_its_instances_are_gone() -> None:
    """Its row tells the time of the deletion. Then it has none: the pass removed its finalizer."""
    world = one(syncer())
    monitor = watch(world)
    passed(world, monitor)
    ref = SyncerRef(NS, "rating")
    world.cluster.delete(ref)
    deleted = world.cluster.syncers[ref].deleted
    (held,) = world.registry.held
    world.registry.refuse[held] = RegistryUnavailable("no answer")
    world.later(30)
    report = passed(world, monitor, ExitCode.EUREKA_UNREAD)
    (row,) = rows_of(report)
    assert (row.since, row.state.words) == (deleted, "not ready")
    world.registry.refuse.clear()
    while ref in world.cluster.syncers:
        world.later(30)
        report = passed(world, monitor)
    assert report.desired is not None
    assert report.desired.claims
    assert rows_of(report) == []
    assert "There is none." in shown(first(monitor))


def status_with(*conditions: tuple[str, ConditionStatus, str, int]) -> SyncerStatus:
    made = []
    for type_, value, reason, at in conditions:
        made.append(
            Condition(
                type=type_,
                status=value,
                reason=reason,
                message=f"of {type_}",
                last_transition=at,
                observed_generation=1,
            )
        )
    return SyncerStatus(observed_generation=1, up=1, desired=1, conditions=tuple(made))


TRUE, FALSE, UNSURE = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


@pytest.mark.parametrize(
    ("conditions", "state", "reason"),
    [
        ([("Ready", TRUE, "InSync", 1), ("Synced", TRUE, "InSync", 2)], State.READY, "InSync"),
        ([("Ready", TRUE, "InSync", 1), ("Synced", FALSE, "Differs", 2)], State.PROBLEM, "Differs"),
        ([("Ready", TRUE, "InSync", 1)], State.READY, "InSync"),
        (
            [("Ready", TRUE, "InSync", 1), ("Conflict", TRUE, "Conflict", 2)],
            State.PROBLEM,
            "Conflict",
        ),
        (
            [("Ready", FALSE, "NoneUp", 1), ("RemovalHeld", TRUE, "TooManyRemovals", 2)],
            State.NOT_READY,
            "TooManyRemovals",
        ),
        ([("Ready", UNSURE, "Unavailable", 3)], State.UNKNOWN, "Unavailable"),
        ([("Synced", FALSE, "Differs", 2)], State.UNKNOWN, ""),
    ],
)
def test_the_state_is_what_the_conditions_say(
    conditions: list[tuple[str, ConditionStatus, str, int]], state: State, reason: str
) -> None:
    """A hold comes before a conflict, and both before the condition Ready."""
    world = one(syncer())
    report = world.run()
    statuses = {SyncerRef(NS, "rating"): status_with(*conditions)}
    (row,) = rows_of(replace(report, all_statuses=statuses))
    assert (row.state, row.reason) == (state, reason)
    times = [at for _, _, named, at in conditions if named == reason]
    assert row.since == max(times, default=None)


def test_without_a_status_the_state_is_unknown_since_the_creation() -> None:
    """Of a syncer and of an import."""
    world = ImportWorld(import_object())
    world.cluster.apply(syncer(created=77), service(), piece(endpoint(1)))
    report = world.run()
    assert report.imports is not None
    bare = replace(report, all_statuses={}, imports=replace(report.imports, all_statuses={}))
    assert [(row.state, row.reason, row.since) for row in rows_of(bare)] == [
        (State.UNKNOWN, "", 77),
        (State.UNKNOWN, "", 1000),
    ]


def test_without_a_good_pass_a_page_says_so() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor, ExitCode.INCOMPLETE)
    assert "last good pass: none yet" in shown(single(monitor, "syncer/rating/rating"))


def test_the_why_of_a_row_is_that_of_its_reason() -> None:
    """Also where a syncer that is not served has removals that are held."""
    report = shop().run()
    cart = SyncerRef(NS, "cart")
    held = status_with(("Ready", FALSE, "NoneUp", 1), ("RemovalHeld", TRUE, "TooManyRemovals", 2))
    (row,) = [
        row
        for row in rows_of(replace(report, all_statuses={**report.all_statuses, cart: held}))
        if row.name == "cart"
    ]
    assert (row.reason, row.why) == ("TooManyRemovals", "of RemovalHeld")


def test_the_first_of_those_that_are_not_ready_serve_nobody() -> None:
    """Held instances still get calls, so their syncers can wait."""
    world = shop()
    report = world.run()
    statuses = dict(report.all_statuses)
    statuses[SyncerRef(NS, "cart")] = replace(statuses[SyncerRef(NS, "cart")], up=2)
    assert [row.name for row in rows_of(replace(report, all_statuses=statuses))] == [
        "geo",
        "cart",
        "rating",
    ]


# --- Imports --------------------------------------------------------------------------------------


def test_imports_have_rows_and_pages_of_their_own() -> None:
    world = ImportWorld(import_object(), import_object("geo", app="GEO"))
    world.lists(dc(1), dc(2))
    monitor = watch(world)
    passed(world, monitor)
    html = first(monitor)
    assert "1 of 2 imports not ready" in shown(html)
    geo, review = rows(html)
    assert geo[:2] == ["shop/geo", "GEO"]
    assert geo[3] == f"{CROSS} not ready"
    assert review[1:4] == ["REVIEW", "2/2", "√ ready"]
    assert "No syncer needs anybody." not in shown(html)
    text = shown(single(monitor, "import/shop/review"))
    assert "Callable: 2 of 2 endpoints written" in text or "Callable: 2" in text
    assert "eurekube-sync explain eimp/shop/review" in text
    assert Page(monitor).single("syncer/shop/review").status == 404


def test_an_import_that_is_not_imported_says_why() -> None:
    world = ImportWorld(import_object(app="A", vipAddress="a"))
    monitor = watch(world)
    passed(world, monitor)
    (row,) = rows(first(monitor))
    assert row[4] == "InvalidSpec"


def test_an_import_that_is_gone_has_no_row() -> None:
    world = ImportWorld(import_object())
    world.lists(dc(1))
    world.run()
    world.imports.delete(import_object().ref, world.clock.now())
    report = world.run()
    assert report.imports is not None
    assert report.imports.claims
    ended = replace(report, imports=replace(report.imports, all_statuses={}))
    assert rows_of(ended) == []


def test_held_endpoints_have_a_plan_of_their_own() -> None:
    others = [dc(number, app="other") for number in range(100, 200)]
    world = ImportWorld(import_object())
    world.lists(*others, *(dc(number) for number in range(1, 21)))
    monitor = watch(world)
    passed(world, monitor)
    world.lists(*others, *(dc(number) for number in range(13, 21)))
    report = passed(world, monitor)
    assert report.imports is not None
    assert report.imports.held is not None
    text = shown(first(monitor))
    assert "12 removals of endpoints wait" in text
    assert f"eurekube-sync run --approve {report.imports.held.plan_id}" in text


# --- What a visitor asks for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("ns=rating", ["cart", "geo", "rating"]),
        ("ns=shop", []),
        ("q=CAR", ["cart"]),
        ("q=notready", ["geo"]),
        ("q=rating%2Fge", ["geo"]),
        ("state=notReady", ["cart", "geo"]),
        ("state=ready", ["rating"]),
        ("state=needing", ["cart", "geo"]),
        ("state=NoMatchingService", ["cart"]),
        ("state=Ready%3DFalse", ["cart", "geo"]),
        ("state=Synced", ["geo", "rating"]),
        ("q=a&state=needing&ns=rating&utm_source=x", ["cart", "geo"]),
        ("", ["cart", "geo", "rating"]),
    ],
)
def test_a_filter_is_a_query_that_can_be_sent_to_a_colleague(query: str, names: list[str]) -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    html = first(monitor, query)
    assert [row[0] for row in rows(html)] == [f"rating/{name}" for name in names]
    if query:
        assert f"{len(names)} of 3 syncers" in shown(html)
        assert "Show all" in shown(html)
    assert {"ns", "q", "state"} <= Elements(html).fields


def test_the_form_keeps_what_was_given() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    html = first(monitor, "ns=rating&q=%22%3E&state=Conflict&reload=on")
    assert 'name="ns" value="rating"' in html
    assert 'name="q" type="search" value="&#34;&gt;"' in html
    assert '<option value="Conflict" selected>' in html
    assert '<input type="hidden" name="reload" value="on">' in html
    assert '<meta http-equiv="refresh" content="30">' in html
    assert "?ns=rating&q=%22%3E&state=Conflict" in Elements(html).links


def test_a_few_rows_that_fit_a_filter_are_not_folded() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    assert "<details open>" in first(monitor, "q=rating/rating")
    assert "<details open>" not in first(monitor)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("state=NotRaedy", 'did you mean "NotReady"?'),
        ("state=" + "x" * 300, "state has at most 253 characters"),
        ("q=" + "x" * 1_000_000, "q has at most 253 characters"),
        ("&".join(f"a{number}=1" for number in range(1000)), "Max number of fields exceeded"),
        ("state=Ready%3DMaybe", "write Ready=True, Ready=False or Ready=Unknown"),
    ],
)
def test_a_query_that_cannot_be_meant_is_an_error(query: str, message: str) -> None:
    """No rows without a word would look like a cluster without syncers."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    status, body = Page(monitor).first(query)
    html = checked(body)
    assert status == 400
    assert message in shown(html)
    assert rows(html) == []
    assert len(body) < 20_000


_ANY_QUERY = st.text(st.characters(codec="utf-8"), max_size=60)


@given(query=_ANY_QUERY)
@example(query="ns=%ff&q=%00%zz&state=%")
@example(query="q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
@example(query=f"q={EVIL}&ns={EVIL}")
def test_any_query_gets_a_page(query: str) -> None:
    """And nothing of it becomes an element."""
    monitor = watch(FakeWorld())
    for text in (query, f"q={query}", f"state={query}", f"ns={query}"):
        status, body = Page(monitor).first(text)
        assert status in (200, 400)
        checked(body)


@given(path=_ANY_QUERY)
@example(path="syncer/%2e%2e/%2e%2e")
@example(path="syncer/rating")
@example(path="syncer/rating/rating/x")
@example(path="import/rating/rating")
@example(path="syncer/%3Cscript%3E/%22")
@example(path="/" * 500)
def test_any_path_gets_a_page(path: str) -> None:
    world = one(syncer())
    monitor = watch(world)
    passed(world, monitor)
    for text in (path, f"syncer/{path}", f"syncer/rating/{path}"):
        status, body = Page(monitor).single(text)
        assert status == 404
        assert len(body) < 20_000
        checked(body)


def test_a_link_keeps_the_other_fields() -> None:
    query = Query(ns="a b", q="&", state="ready", reload=True)
    assert query.link(q="") == "?ns=a+b&state=ready&reload=on"
    assert query.link(ns="", q="", state="", reload=False) == "."
    assert parse_query(query.link().removeprefix("?")) == query


# --- Text of others -------------------------------------------------------------------------------


def evil_reports() -> Iterable[tuple[FakeWorld, Monitor]]:
    """Monitors whose syncers, conditions, passes and lock have such texts."""
    world = shop()
    monitor = Monitor(world.clock, EVIL, EVIL, allowed=100, keeps_reports=True)
    monitor.has_lock(EVIL, lambda: True)
    monitor.uses([EVIL])
    monitor.called(Server.EUREKA, EVIL, EVIL)
    report = world.run()
    condition = Condition(
        type=EVIL,
        status=FALSE,
        reason=EVIL,
        message=EVIL,
        last_transition=1,
        observed_generation=1,
    )
    status = SyncerStatus(
        observed_generation=1,
        ready=EVIL,
        apps=(EVIL, EVIL),
        conditions=(replace(condition, type="Ready"), condition),
    )
    statuses = dict.fromkeys(report.all_statuses, status)
    monitor.passed(replace(report, all_statuses=statuses, cluster=EVIL), ExitCode.OK, EVIL, 1)
    yield world, monitor


def test_text_that_others_wrote_is_escaped() -> None:
    """Names, messages, summaries and the owner may hold any text."""
    for _, monitor in evil_reports():
        for html in (
            first(monitor),
            single(monitor, "syncer/rating/rating"),
            first(monitor, f"q={EVIL[:5]}"),
        ):
            assert "<script" not in html
            assert "alert(" in html or "<script>" not in html
            assert printable(html.replace("\n", "")) == html.replace("\n", "")


def test_no_page_has_a_secret_of_a_spec() -> None:
    """Nothing of the metadata is shown, of which a person may have made a password."""
    world = one(syncer(metadata={"user.password": "correct-horse"}))
    monitor = watch(world)
    passed(world, monitor)
    for html in (first(monitor), single(monitor, "syncer/rating/rating")):
        assert "correct-horse" not in html


def test_the_policy_allows_the_style_of_the_page_and_no_other() -> None:
    """Its hash is that of what stands between the tags."""
    html = first(watch(FakeWorld()))
    style = html.partition("<style>")[2].partition("</style>")[0]
    expected = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{expected}'" in POLICY
    assert POLICY.startswith("default-src 'none'; ")
    assert "unsafe" not in POLICY


# --- Sizes ----------------------------------------------------------------------------------------


def test_many_rows_are_cut_counted_and_found_by_a_filter() -> None:
    """A browser must be able to show the page."""
    world = FakeWorld()
    for number in range(MOST_ROWS + 2):
        name = f"bad-{number:04}"
        world.cluster.apply(syncer(name, selector={"service": name}))
    for number in range(MOST_ROWS + 3):
        name = f"good-{number:04}"
        world.cluster.apply(
            syncer(name, selector={"app": name}),
            service(name, labels={"app": name}),
            piece(endpoint(1, address=f"10.1.{number // 250}.{number % 250}"), service=name),
        )
    monitor = watch(world)
    passed(world, monitor)
    html = first(monitor)
    text = shown(html)
    assert f"{MOST_ROWS + 2} of {2 * MOST_ROWS + 5} syncers are not ready" in text
    assert "2 syncers more not shown" in text
    assert f"{MOST_ROWS + 3} syncers in order" in text
    assert "3 syncers more not shown" in text
    assert len(rows(html)) == 2 * MOST_ROWS
    last = f"bad-{MOST_ROWS + 1:04}"
    assert f"rating/{last}" not in text
    assert [row[0] for row in rows(first(monitor, f"q={last}"))] == [f"rating/{last}"]
    assert f"rating/{last}" in shown(single(monitor, f"syncer/rating/{last}"))


def test_the_page_is_small_whatever_others_wrote() -> None:
    """Each character of a message may become several."""
    world = one(syncer())
    report = world.run()
    condition = Condition(
        type="Ready",
        status=FALSE,
        reason="R" * 1024,
        message="\u200b&" * 16_000,
        last_transition=1,
        observed_generation=1,
    )
    status = SyncerStatus(observed_generation=1, conditions=(condition,), apps=("A" * 200,) * 10)
    assert report.desired is not None
    claim = report.desired.claims[SyncerRef(NS, "rating")]
    claims, statuses = {}, {}
    for number in range(6000):
        ref = SyncerRef("n" * 63, f"{number:04}" + "s" * 200)
        owner = replace(claim.syncer, namespace=ref.namespace, name=ref.name)
        claims[ref] = replace(claim, syncer=owner)
        statuses[ref] = status
    monitor = watch(world)
    many = replace(report, desired=replace(report.desired, claims=claims), all_statuses=statuses)
    monitor.passed(many, ExitCode.OK, "", 1)
    html = first(monitor)
    assert len(html.encode()) < 1_500_000
    assert f"{6000 - MOST_ROWS} syncers more not shown" in shown(html)
    assert max(len(row[-1]) for row in rows(html)) == 3 * MOST_CHARACTERS + MOST_CHARACTERS // 2 + 3


def test_a_page_is_made_of_one_report_even_if_a_pass_ends_meanwhile() -> None:
    """Rows are kept for as long as the report is the same."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    made = Page(monitor)
    before = made.first("").body.decode()
    missing = "Not registered: no Service matches its selector."
    assert missing in shown(made.single("syncer/rating/cart").body.decode())
    world.cluster.apply(
        service("cart", labels={"app": "cart"}), piece(endpoint(21), service="cart")
    )
    assert rows(made.first("").body.decode()) == rows(before)
    assert missing in shown(made.single("syncer/rating/cart").body.decode())
    passed(world, monitor)
    assert "1 of 3 syncers are not ready" in shown(made.first("").body.decode())
    assert "Registered: 1 of 1 UP as CART" in shown(made.single("syncer/rating/cart").body.decode())


def test_what_is_made_for_a_visitor_goes_with_its_pass() -> None:
    """A report of days ago would take as much memory as that of now."""
    world = shop()
    monitor = watch(world)
    made = Page(monitor)
    for _ in range(3):
        passed(world, monitor)
        made.first("")
        made.single("syncer/rating/cart")
    assert (len(made._rows), len(made._looks)) == (1, 1)
    passed(world, monitor)
    gc.collect()
    assert (len(made._rows), len(made._looks)) == (0, 0)


# --- The page of one ------------------------------------------------------------------------------


def test_a_syncers_page_has_the_links_of_explain() -> None:
    """What holds, the first link that does not, what to do, and the conditions."""
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    world.later(45)
    html = single(monitor, "syncer/rating/cart")
    text = shown(html)
    order = [
        "syncer rating/cart",
        f"{CROSS} not ready",
        "NoMatchingService",
        "(45 s ago)",
        "ok: its spec is valid",
        "broken: no Service in namespace rating matches app=cart",
        "Service cart has app=carts",
        "Not registered: no Service matches its selector.",
        "kubectl edit esync cart -n rating",
        "eurekube-sync explain rating/cart",
        "Conditions",
        "RemovalHeld",
    ]
    in_order(text, order)
    assert help_on(Reason.NO_MATCHING_SERVICE) in Elements(html).links
    assert "../../." in Elements(html).links


def test_a_name_that_has_no_page_leads_back() -> None:
    world = shop()
    monitor = watch(world)
    passed(world, monitor)
    status, body = Page(monitor).single("syncer/rating/nosuch")
    assert status == 404
    assert "There is no page syncer/rating/nosuch" in shown(checked(body))
    assert "../../." in Elements(body.decode()).links
