"""`status` shows imports after the syncers, the worst first."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, cast

from eurekube_sync.cli.output.answers import overview_data, overview_table, summary
from eurekube_sync.cli.output.table import console_for
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import LookWorld, look
from eurekube_sync.explain.overview import Overview, chosen, code_of_overview, overview
from eurekube_sync.model import ports
from eurekube_sync.model.sources import Cause, Unknown
from tests.unit.worlds.asked import Details
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
        "eimp/shop/none NONE 0/0 NoInstances Not callable, because Eureka lists no instance of "
        "NONE",
        "eimp/shop/other OTHER 3/4 Differs Partly callable: 3 of 4 endpoints written, because its "
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
        return [each.about for each in chosen(found, **options).imports]

    assert names(app="review") == ["eimp/shop/review"]
    assert names(condition="NoInstances") == ["eimp/shop/none"]


def test_without_eureka_it_is_unknown_what_is_callable() -> None:
    there = three()
    there.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    found = status(there)
    assert {each.up for each in found.imports} == {None}
    assert code_of_overview(found) is ExitCode.EUREKA_UNREAD
    assert any("eimp/shop/review REVIEW -" in line for line in table(found))


def test_without_networks_no_import_is_shown() -> None:
    there = three()
    there.networks = ()
    found = status(there)
    assert found.imports == ()
    assert "import" not in summary(found)
