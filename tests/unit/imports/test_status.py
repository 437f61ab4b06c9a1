"""`status` shows imports after the syncers, the worst first."""

from __future__ import annotations

import io
from typing import Any, cast

from eurekube_sync.cli.output.answers import overview_data, overview_table, summary
from eurekube_sync.cli.output.table import console_for
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import LookWorld, look
from eurekube_sync.explain.overview import Overview, chosen, code_of_overview, overview
from eurekube_sync.model import ports
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Details
from tests.unit.worlds.build import syncer
from tests.unit.worlds.imports import SHOP, ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]


def status(there: ImportWorld) -> Overview:
    seen = LookWorld(world=there.world, details=cast(ports.Details, Details()))
    return overview(look(seen, replace(there.settings, dry_run=True), [SHOP]))


def table(found: Overview, *, everything: bool = False) -> list[str]:
    stream = io.StringIO()
    console_for(stream).print(overview_table(found, ["eureka"], everything=everything))
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def three() -> ImportWorld:
    """One import in order, one whose app nobody has, one that is not written completely."""
    there = ImportWorld(import_object(), import_object("none"), import_object("other"))
    there.lists(*OTHERS, dc(1))
    there.passes()
    there.lists(*OTHERS, dc(1), dc(104, app="other"))
    return there


def test_the_worst_import_comes_first_and_those_in_order_are_left_out() -> None:
    found = status(three())
    lines = table(found)
    shown = [line.partition(" ")[2] for line in lines if "eimp/" in line]
    assert shown == [
        "eimp/shop/none NONE 0/0 NoInstances 0 s Not callable, because Eureka lists no instance of "
        "NONE",
        "eimp/shop/other OTHER 3/4 Differs - Partly callable: 3 of 4 endpoints written, because its "
        "slices have 3 of 4 endpoints",
    ]
    assert "+ 1 in sync (-a shows them)" in lines
    assert summary(found).endswith("0 instances UP; 3 imports: 1 callable")
    assert code_of_overview(found) is ExitCode.NOT_REGISTERED
    assert len([line for line in table(found, everything=True) if "eimp/" in line]) == 3


def test_the_data_has_all_imports() -> None:
    data = overview_data(status(three()), ["eureka"])
    assert [(each["import"], each["state"], each["written"]) for each in data["imports"]] == [
        ("eimp/shop/none", "broken", 0),
        ("eimp/shop/other", "partly", 3),
        ("eimp/shop/review", "inSync", 1),
    ]


def test_imports_are_filtered_like_syncers() -> None:
    found = status(three())

    def names(**options: Any) -> list[str]:
        return [row.explanation.about for row in chosen(found, **options).imports]

    assert names(app="review") == ["eimp/shop/review"]
    assert names(condition="NoInstances") == ["eimp/shop/none"]
    assert names(condition="Ready=False") == ["eimp/shop/none"]
    assert names(condition="RemovalHeld") == []


def test_since_is_the_age_of_the_reason_of_the_row() -> None:
    """None where no condition has that reason. Before the first pass it is the import's age."""
    there = three()
    at = there.clock.now()
    there.later(600)
    since = {row.explanation.about: row.since for row in status(there).imports}
    assert since == {
        "eimp/shop/none": int(at),
        "eimp/shop/other": None,  # it differs since the pass, which cannot know it
        "eimp/shop/review": int(at),
    }
    (line,) = [line for line in table(status(there)) if "eimp/shop/none" in line]
    assert " NoInstances 10 min " in line
    there.imports.delete(ImportRef(SHOP, "none"), at + 300)
    (row,) = chosen(status(there), condition="Deleting").imports
    assert row.since == at + 300
    there.imports.apply(import_object("new"))
    new = chosen(status(there), app="new").imports[0]
    assert new.since == new.import_.created


def test_help_is_offered_for_the_first_import_that_is_broken() -> None:
    """A broken syncer comes before it."""
    there = three()
    assert "eurekube-sync help NoInstances says what to do" in table(status(there))
    there.cluster.apply(syncer("cart", selector={"app": "cart"}))
    assert "eurekube-sync help NoInstallation says what to do" in table(status(there))


def test_held_endpoints_are_told_with_the_command_that_releases_them() -> None:
    """They count as held. A registry that is young is nobody's to decide."""
    there = ImportWorld(import_object(), import_object("cart"))
    there.lists(*OTHERS, dc(1), dc(2, app="cart"))
    there.passes()
    there.lists(*OTHERS)
    there.passes()
    there.later(60)
    found = status(there)
    assert found.held == 2
    assert "2 removals held" in summary(found)
    (told,) = [line for line in table(found) if line.startswith("! imports: ")]
    assert told.startswith("! imports: 2 endpoints stay since ")
    assert "--approve" in told
    there.lists(*(replace(other, registered=10**13) for other in OTHERS))
    assert not [line for line in table(status(there)) if line.startswith("! imports: ")]


def test_without_eureka_it_is_unknown_what_is_callable() -> None:
    there = three()
    there.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    found = status(there)
    assert {row.explanation.up for row in found.imports} == {None}
    assert {row.reason for row in found.imports} == {"NotLookedAt"}
    assert code_of_overview(found) is ExitCode.EUREKA_UNREAD
    assert any("eimp/shop/review REVIEW -" in line for line in table(found))


def test_without_networks_no_import_is_shown() -> None:
    there = three()
    there.networks = ()
    found = status(there)
    assert found.imports == ()
    assert "import" not in summary(found)
