"""The HTML page: it shows the most important facts, escapes text from others, and needs no
script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser

from eurekube_sync.cli.monitoring.exposition import KEPT_SYNCERS, html_of
from eurekube_sync.cli.monitoring.metrics import (
    AT_RISK,
    HELD,
    INSTANCES,
    UNKNOWN,
    Monitor,
    Passed,
    Values,
)
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerRef, SyncerStatus
from eurekube_sync.model.sanitize import printable
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

EVIL = "<script>alert('x')</script>\"&\x1b\u202e\u200b"


def status(
    *, ready: str = "", app: str = "", works: bool = False, reason: str = "", message: str = ""
) -> SyncerStatus:
    """The status of a syncer with its condition Ready."""
    state = ConditionStatus.TRUE if works else ConditionStatus.FALSE
    one = Condition(
        type="Ready",
        status=state,
        reason=reason,
        message=message,
        last_transition=0,
        observed_generation=1,
    )
    return SyncerStatus(observed_generation=1, ready=ready, app_name=app, conditions=(one,))


def remembering(
    owner: str = "shop",
    *,
    lock: str = "",
    passes: tuple[Passed, ...] = (),
    syncers: Iterable[tuple[SyncerRef, SyncerStatus]] = (),
    values: Values | None = None,
) -> Monitor:
    """A monitor whose page shows these values."""
    monitor = Monitor(FakeWorld().clock, owner, owner, allowed=1)
    monitor.passes, monitor.syncers = passes, tuple(syncers)
    monitor._gauges = values or {}
    monitor.has_lock(lock, lambda: True)
    return monitor


class Elements(HTMLParser):
    """The names of the page's elements. It checks that each element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_before_the_first_pass() -> None:
    page = "".join(html_of(remembering()))
    assert "No pass has ended yet in this process." in page
    assert "<p>None is known.</p>" in page
    assert Elements(page).open == []


def test_all_that_a_pass_says() -> None:
    """The page shows the report of a whole pass."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint(1), endpoint(2)))
    monitor = Monitor(world.clock, "shop", "all", allowed=1)
    monitor.passed(world.run(), ExitCode.OK, "2 registered, 0 renewed", 0.34)
    page = "".join(html_of(monitor))
    assert "The last pass was good: 2 registered, 0 renewed" in page
    assert "<dt>instances UP</dt><dd>2</dd>" in page
    assert '<td data-name="Ready">2/2</td>' in page
    assert '<td data-name="Took">0.3 s</td>' in page
    assert 'class="bad"' not in page


def test_problems_are_highlighted_on_the_page() -> None:
    """The problems are a failed pass, DOWN instances, held removals, leases at risk and unread
    sources."""
    values: Values = {
        INSTANCES: {("RATING", "DOWN"): 3.0, ("SHOP", "DOWN"): 1.0},
        HELD: {("TooManyRemovals",): 40.0},
        AT_RISK: {(): 2.0},
        UNKNOWN: {("Eureka",): 1.0, ("Kubernetes",): 0.0},
    }
    failed = Passed(at=0, seconds=1, code=ExitCode.EUREKA_UNREAD, summary="nothing changed")
    broken = [
        (SyncerRef("a", str(number)), status(reason="InvalidSpec"))
        for number in range(KEPT_SYNCERS + 2)
    ]
    page = "".join(html_of(remembering(passes=(failed,), syncers=broken, values=values)))
    assert '<p class="bad">The last pass ended with EUREKA_UNREAD (20): nothing changed</p>' in page
    assert '<dt>instances DOWN</dt><dd class="bad">4</dd>' in page
    assert '<dt>removals held: TooManyRemovals</dt><dd class="bad">40</dd>' in page
    assert '<dt>leases at risk</dt><dd class="bad">2</dd>' in page
    assert '<dt>sources of Eureka not read</dt><dd class="bad">1</dd>' in page
    assert "sources of Kubernetes" not in page
    assert "InvalidSpec" in page
    assert "2 syncers more; those that are not ready come first." in page


def test_a_cell_without_a_text_keeps_its_place() -> None:
    """Otherwise later cells would be in the wrong column."""
    page = "".join(
        html_of(remembering(syncers=[(SyncerRef("a", "b"), status(ready="0/0", message="why"))]))
    )
    row = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.findall(r'<td data-name="(\w+)">([^<]*)</td>', row) == [
        ("Syncer", "a/b"),
        ("App", ""),
        ("Ready", "0/0"),
        ("Reason", ""),
        ("Message", "why"),
    ]


def test_text_that_others_wrote_is_escaped() -> None:
    """Names, messages, summaries and the owner may hold any text."""
    shown = (
        SyncerRef(EVIL, EVIL),
        status(app=EVIL, ready=EVIL, works=True, reason=EVIL, message=EVIL),
    )
    one = remembering(
        EVIL, lock=EVIL, syncers=[shown], values={HELD: {(EVIL,): 1.0}, INSTANCES: {(EVIL, EVIL): 1.0}},
        passes=(Passed(at=0, seconds=1, code=ExitCode.OK, summary=EVIL),),
    )  # fmt: skip
    page = "".join(html_of(one))
    assert "<script" not in page
    assert printable(page.replace("\n", "")) == page.replace("\n", "")
    elements = Elements(page)
    assert "script" not in elements.names
    assert elements.open == []


def test_many_syncers_are_cut_and_those_that_do_not_work_come_first() -> None:
    """A browser must be able to show the page."""
    world = FakeWorld()
    for number in range(KEPT_SYNCERS + 2):
        world.cluster.apply(syncer(f"app-{number:04}", selector={"service": f"app-{number:04}"}))
    world.cluster.apply(syncer("zzz"), service(), piece(endpoint(1)))
    monitor = Monitor(world.clock, "shop", "all", allowed=1)
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    page = "".join(html_of(monitor))
    assert "3 syncers more" in page
    assert "/app-0000</td>" in page
    assert "/zzz</td>" not in page
