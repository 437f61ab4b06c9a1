"""The status page in a browser: on a phone and on a desk, light and dark, with few syncers and many,
by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eurekube_sync.cli.monitoring.metrics import Monitor
from eurekube_sync.controller.exit_codes import ExitCode
from tests.browser.chromium import Chromium
from tests.browser.conftest import served, town
from tests.unit.cli.monitoring.test_page import evil_reports
from tests.unit.worlds.build import syncer
from tests.unit.worlds.fakes import FakeWorld

PHONE, TABLET, DESK = 390, 800, 1400
_LOOKS = [
    pytest.param(width, dark, id=f"{width}-{'dark' if dark else 'light'}")
    for width in (PHONE, TABLET, DESK)
    for dark in (False, True)
]
_VISIBLE = "(element => element.checkVisibility({visibilityProperty: true}))"
_CONTRAST = """
(() => {
  const channel = part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => {
    const [red, green, blue] = parts(color).map(part => channel(part / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((parts(color)[3] ?? 1) > 0) return color;
    }
    return "none";
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = [99, ""];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    const pair = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < least[0]) least = [ratio, texts.currentNode.data.trim()];
  }
  return least;
})()
"""
"""The least contrast of a text with what is behind it, as WCAG 2 reckons it, and that text."""


@pytest.fixture(autouse=True)
def no_complaints(browser: Chromium) -> Iterator[None]:
    """No page breaks its own policy, or runs anything."""
    browser.complaints.clear()
    yield
    assert browser.complaints == []


def seen(browser: Chromium, selector: str) -> list[str]:
    """The words of the elements that can be seen."""
    found = browser.value(
        f"[...document.querySelectorAll({selector!r})].filter({_VISIBLE}).map(element => "
        "element.innerText.trim().replace(/\\s+/g, ' '))"
    )
    return list(found)


def check_the_look(browser: Chromium, width: int) -> None:
    """Nothing is cut off at the side, and each text can be read."""
    wide = browser.value("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1] == width
    ratio, text = browser.value(_CONTRAST)
    assert ratio >= 4.5, text
    assert browser.value("getComputedStyle(document.body).maxWidth") != "none"  # its style is taken


@pytest.mark.parametrize(("width", "dark"), _LOOKS)
@pytest.mark.parametrize(
    ("page", "lead"),
    [
        ("village", "1 of 3 syncers are not ready"),
        ("city", "23 of 311 syncers are not ready"),
        ("night", "311 of 311 syncers are not ready"),
    ],
)
def test_the_count_is_the_first_thing_that_is_seen(
    browser: Chromium,
    page: str,
    lead: str,
    width: int,
    dark: bool,
    request: pytest.FixtureRequest,
) -> None:
    """Without scrolling, at each width."""
    browser.show(request.getfixturevalue(page), width=width, dark=dark)
    check_the_look(browser, width)
    assert seen(browser, ".lead") == [lead]
    bottom = browser.value("document.querySelector('.lead').getBoundingClientRect().bottom")
    assert 0 < bottom < 200
    background = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark


def test_the_tests_see_a_page_that_is_too_wide_or_too_pale(browser: Chromium, village: str) -> None:
    """Else they could not fail."""
    browser.show(village, width=PHONE)
    browser.value("document.querySelector('h1').style.color = '#999'")
    with pytest.raises(AssertionError, match="eurekube-sync: prod"):
        check_the_look(browser, PHONE)
    browser.value("document.querySelector('h1').style.width = '600px'")
    with pytest.raises(AssertionError):
        check_the_look(browser, PHONE)


def test_those_in_order_are_folded_until_somebody_opens_them(browser: Chromium, city: str) -> None:
    """By the keyboard: the line that tells their number has the focus."""
    browser.show(city, width=DESK)
    rows = "#syncers td.name"
    assert len(seen(browser, rows)) == 34
    assert "277 syncers in order" in seen(browser, "summary")
    browser.value("document.querySelector('#syncers summary').focus()")
    browser.press("Enter")
    browser.wait_for("document.querySelector('#syncers details').open")
    assert len(seen(browser, rows)) == 34 + 200
    assert seen(browser, "#syncers details > p") == [
        "77 syncers more not shown: narrow them down by namespace, name or state."
    ]
    check_the_look(browser, DESK)


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_what_is_held_is_seen_before_the_rows(browser: Chromium, night: str, width: int) -> None:
    """With the command of each way out, whole, so that it can be pasted."""
    browser.show(night, width=width)
    (held,) = seen(browser, ".box")
    assert "removals wait Plan id " in held
    assert "this looks like a wrong selector; do not approve" in held
    commands = seen(browser, ".box pre")
    assert [command.split()[:2] for command in commands] == [
        ["eurekube-sync", "explain"],
        ["eurekube-sync", "run"],
    ]
    assert "--approve" in commands[1]
    tops = [
        browser.value(f"document.querySelector({selector!r}).getBoundingClientRect().top")
        for selector in (".lead", ".box", "section:not(.box)", "#syncers")
    ]
    assert tops == sorted(tops)
    if width == DESK:
        bottom = browser.value("document.querySelector('.box').getBoundingClientRect().bottom")
        assert bottom < 900  # the whole of it, at once


def test_the_form_filters_by_the_keyboard(browser: Chromium, city: str) -> None:
    """The address can be sent to a colleague."""
    browser.show(city, width=DESK)
    browser.value("document.querySelector('input[name=q]').focus()")
    browser.write("app-031")
    browser.press("Enter")
    browser.wait_for("location.search.includes('app-031') && document.readyState === 'complete'")
    assert seen(browser, "#syncers td.name") == ["team-3/app-031"]
    assert "1 of 311 syncers fits the filter." in seen(browser, "#syncers > p")
    browser.go_to(f"{city}?state=ready&ns=team-3&q=app-10")
    assert seen(browser, "#syncers td.name") == ["team-3/app-101", "team-3/app-108"]


def test_a_row_leads_to_its_page_and_back(browser: Chromium, city: str) -> None:
    browser.show(city, width=DESK)
    browser.value("document.querySelector('td.name a').click()")
    browser.wait_for(
        "location.pathname.startsWith('/syncer/') && document.readyState === 'complete'"
    )
    assert seen(browser, "h1")[0].startswith("syncer team-")
    assert any(
        "no Service" in link or "not ready" in link for link in seen(browser, "ol.links > li")
    )
    browser.value("document.querySelector('header a').click()")
    browser.wait_for(f"location.href === {city!r} && document.readyState === 'complete'")


@pytest.mark.parametrize(("width", "dark"), _LOOKS)
@pytest.mark.parametrize("path", ["syncer/team-0/app-000", "syncer/team-1/app-001", "syncer/a/b"])
def test_the_other_pages_can_be_read_as_well(
    browser: Chromium, night: str, path: str, width: int, dark: bool
) -> None:
    browser.complaints.clear()
    browser.show(f"{night}{path}", width=width, dark=dark)
    check_the_look(browser, width)
    assert seen(browser, "h1")
    # The browser notes each answer that is no 200.
    browser.complaints[:] = [note for note in browser.complaints if "404" not in note]


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_narrow_table_still_is_one_for_a_screen_reader(
    browser: Chromium, village: str, width: int
) -> None:
    """Its rows look like cards, and have roles."""
    browser.show(village, width=width)
    browser.call("Accessibility.enable")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    browser.call("Accessibility.disable")
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    assert roles.count("table") == 2
    assert roles.count("columnheader") == 4 + 7
    empty = 1  # the app of a syncer without a Service; a card leaves it out
    assert roles.count("cell") == 4 + 7 - (empty if width == PHONE else 0)
    assert {"banner", "main", "contentinfo"} <= set(roles)


def test_the_first_tab_leads_past_all_to_the_syncers(browser: Chromium, night: str) -> None:
    """Its link is seen only then."""
    browser.show(night, width=DESK)
    assert browser.value("document.querySelector('.skip').getBoundingClientRect().right") < 0
    browser.press("Tab")
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    outline = browser.value("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press("Enter")
    browser.wait_for("location.hash === '#syncers'")


def test_what_others_wrote_runs_nothing_and_widens_nothing(browser: Chromium) -> None:
    """As a name, a message, an owner, a server, or a query."""
    for _, monitor in evil_reports():
        with served(monitor) as url:
            for path in ("", "syncer/rating/rating", "?q=%3Cscript%3Ealert(1)%3C/script%3E"):
                for width in (DESK, TABLET, PHONE):
                    browser.show(f"{url}{path}", width=width)
                    check_the_look(browser, width)
                assert browser.value("document.scripts.length") == 0
                assert "<script>alert('x')" in browser.value("document.body.innerText")


def test_the_longest_names_fit_a_phone(browser: Chromium) -> None:
    """253 characters without a space, as Kubernetes allows them."""
    world = FakeWorld()
    name, namespace = "s" * 253, "n" * 63
    world.cluster.apply(syncer(name, namespace=namespace, selector={"service": "x" * 63}))
    monitor = Monitor(world.clock, "o" * 60, "all", allowed=200, keeps_reports=True)
    monitor.uses(["http://" + "e" * 200])
    monitor.passed(world.run(), ExitCode.OK, "y" * 300, 1)
    with served(monitor) as url:
        for width in (PHONE, TABLET, DESK):
            for path in ("", f"syncer/{namespace}/{name}"):
                browser.show(f"{url}{path}", width=width)
                check_the_look(browser, width)


def test_a_page_of_many_is_small_and_quick(browser: Chromium) -> None:
    """Of 600 syncers the browser gets 400 rows."""
    with served(town(600, 300)) as url:
        browser.show(url, width=PHONE)
        assert browser.value("document.querySelectorAll('#syncers tbody tr').length") == 400
        assert browser.value("document.documentElement.outerHTML.length") < 500_000
        check_the_look(browser, PHONE)
