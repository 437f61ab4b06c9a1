"""`explain import/NAMESPACE/NAME`: the first link that is broken is the answer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import Look, LookWorld, look
from eurekube_sync.explain.chain import code_of
from eurekube_sync.explain.imports import explain_import
from eurekube_sync.explain.links import Explanation, Mark, Outcome
from eurekube_sync.explain.what import Kind, What, parse_what
from eurekube_sync.model import ports
from eurekube_sync.model.kubernetes import ServicePort
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Details
from tests.unit.worlds.build import DENIED, DOWN, service
from tests.unit.worlds.imports import REVIEW, SHOP, ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]
WHAT = parse_what("import/shop/review")


def looked(there: ImportWorld) -> Look:
    seen = LookWorld(world=there.world, details=cast(ports.Details, Details()))
    return look(seen, replace(there.settings, dry_run=True), [SHOP])


def why(there: ImportWorld, what: What = WHAT) -> Explanation:
    return explain_import(what, looked(there))


def marks(found: Explanation) -> list[str]:
    return [f"{link.part} {link.mark}" for link in found.links]


@pytest.fixture
def world() -> ImportWorld:
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1), dc(2))
    there.passes()
    return there


@pytest.mark.parametrize("kind", ["import", "eimp", "eurekaimport", "eurekaimports"])
def test_an_import_is_named_as_kubectl_names_it(kind: str) -> None:
    what = parse_what(f"{kind}/shop/review")
    assert what == What(Kind.IMPORT, "review", "shop")
    assert str(what) == "eimp/shop/review"


def test_an_import_in_order_has_each_link(world: ImportWorld) -> None:
    world.wire.calls.clear()
    found = why(world)
    assert found.outcome is Outcome.REGISTERED
    assert marks(found) == [
        "import ok",
        "spec ok",
        "services ok",
        "eureka ok",
        "slices ok",
        "lastPass note",
    ]
    assert found.sentence == "Callable: 2 of 2 endpoints written"
    assert code_of([found], looked(world)) is ExitCode.OK
    assert world.wire.writes() == []


def test_before_the_first_pass_the_next_one_is_waited_for() -> None:
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))
    found = why(there)
    assert (found.outcome, found.reason) == (Outcome.NOT_REGISTERED, "Differs")
    assert found.fix == "wait for the next pass"
    assert "services note" in marks(found)
    assert code_of([found], looked(there)) is ExitCode.NOT_REGISTERED


def test_an_import_of_which_something_is_left_out_is_callable(world: ImportWorld) -> None:
    """A note names the instances."""
    world.lists(*OTHERS, dc(1), dc(2), dc(3, plain=False))
    found = why(world)
    assert found.outcome is Outcome.REGISTERED
    (note,) = [link for link in found.links if link.part == "instances"]
    assert note.mark is Mark.NOTE
    assert note.details == (
        "REVIEW/dc-3:review:8080: NoEnabledPort: it enables no port that the import offers",
    )


def test_some_endpoints_are_partly_callable(world: ImportWorld) -> None:
    world.lists(*OTHERS, dc(1), dc(2), dc(3))
    found = why(world)
    assert found.outcome is Outcome.PARTLY
    assert found.sentence.startswith("Partly callable: 2 of 3 endpoints written, because its")


def test_all_left_out_gives_the_reason(world: ImportWorld) -> None:
    """Their endpoints stay until a second pass confirms it."""
    world.lists(*OTHERS, dc(1, status=DOWN))
    found = why(world)
    assert (found.outcome, found.reason) == (Outcome.PARTLY, "NotUp")
    world.passes()
    world.later(60)
    world.passes()
    found = why(world)
    assert (found.outcome, found.reason) == (Outcome.NOT_REGISTERED, "NotUp")


def test_a_held_endpoint_is_a_note(world: ImportWorld) -> None:
    """Callers lose nothing by it. What is held of another import is told there."""
    world.imports.apply(import_object("other"), import_object("calm", app="other"))
    world.passes()
    world.lists(*(replace(each, registered=10**13) for each in (dc(1), *OTHERS)))
    found = why(world)
    assert found.outcome is Outcome.REGISTERED
    (note,) = [link for link in found.links if link.part == "brake"]
    assert note.text.startswith("1 endpoint stays: Eureka lists nothing that was registered more")
    assert note.details == ()  # it ends by itself
    calm = why(world, parse_what("import/shop/calm"))
    assert "brake note" not in marks(calm)


def test_a_held_endpoint_that_waits_for_a_person_has_the_command(world: ImportWorld) -> None:
    """Three imports of four would lose their last endpoint."""
    names = ("b", "c", "d")
    world.imports.apply(*(import_object(name) for name in names))
    apps = [dc(number, app=name) for number, name in enumerate(names, 10)]
    world.lists(*OTHERS, dc(1), *apps)
    world.passes()
    world.lists(*OTHERS)
    found = why(world)
    held = looked(world).report.imports
    assert held is not None
    assert held.held is not None
    (note,) = [link for link in found.links if link.part == "brake"]
    (detail,) = note.details
    assert detail.startswith("if all held removals are right, eurekube-sync run --approve ")
    assert held.held.plan_id in detail


@pytest.mark.parametrize(
    ("spec", "existing", "reason", "part"),
    [
        ({"aps": "x"}, None, "InvalidSpec", "spec"),
        ({}, service("review", namespace=SHOP), "ServiceExists", "services"),
        (
            {"service": {"adopt": True}},
            service(
                "review",
                ServicePort(name="a", port=1),
                ServicePort(name="b", port=2),
                namespace=SHOP,
            ),
            "AmbiguousPort",
            "port",
        ),
        ({"syncerClass": "other"}, None, "NoInstallation", "served"),
    ],
)
def test_what_is_wrong_with_the_import_comes_before_its_instances(
    spec: dict[str, Any], existing: Any, reason: str, part: str
) -> None:
    there = ImportWorld(import_object(**spec))
    if existing is not None:
        there.cluster.apply(existing)
    there.lists(*OTHERS)
    found = why(there)
    assert found.broken is not None
    assert (found.reason, found.broken.part) == (reason, part)
    assert found.fix == "kubectl edit eimp review -n shop"


def test_without_a_class_the_scope_excludes_it() -> None:
    there = ImportWorld(import_object())
    there.scope = replace(there.scope, syncer_class="other")
    found = why(there)
    assert found.broken is not None
    assert "the scope given here excludes it" in found.broken.text


def test_a_grant_that_is_missing_breaks_the_spec() -> None:
    there = ImportWorld(import_object(vipAddress="review"))
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {}
    there.lists(*OTHERS)
    found = why(there)
    assert (found.reason, marks(found)[-2]) == ("NotGranted", "spec broken")


def test_an_app_that_nobody_has_breaks_the_link_of_eureka() -> None:
    there = ImportWorld(import_object(vipAddress="reviews"))
    there.lists(*OTHERS)
    found = why(there)
    assert found.sentence == "Not callable, because Eureka lists no instance of reviews"


def test_an_import_that_does_not_exist_has_similar_names() -> None:
    there = ImportWorld(import_object("reviews"))
    there.lists(*OTHERS)
    found = why(there)
    assert found.reason == "NothingFound"
    assert found.links[0].details == ("similar: reviews",)
    there = ImportWorld()
    assert why(there).links[0].details == ()


def test_a_deleted_import_says_so(world: ImportWorld) -> None:
    world.imports.delete(REVIEW, world.clock.now())
    assert why(world).reason == "Deleting"


def test_a_suspended_import_says_so(world: ImportWorld) -> None:
    world.imports.apply(import_object(suspend=True))
    assert why(world).outcome is Outcome.REGISTERED
    world.lists(*OTHERS, dc(1), dc(2), dc(3))
    found = why(world)
    assert (found.outcome, found.reason) == (Outcome.PARTLY, "Suspended")


def test_what_could_not_be_read_is_unknown(world: ImportWorld) -> None:
    """Imports, Services, Eureka, or the networks, which only the installation knows."""
    world.networks = ()
    off = why(world)
    assert (off.outcome, off.links[0].fix) == (
        Outcome.UNKNOWN,
        "give --import-networks as the installation does",
    )
    world.networks = ("10.20.0.0/16",)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    found = why(world)
    assert found.outcome is Outcome.UNKNOWN
    assert code_of([found], looked(world)) is ExitCode.EUREKA_UNREAD
    world.cluster.unknown["services", "*"] = DENIED
    found = why(world)
    assert code_of([found], looked(world)) is ExitCode.KUBERNETES_DENIED
    world.imports.unknown = DENIED
    assert why(world).links[0].mark is Mark.UNKNOWN


def test_endpoints_that_are_held_are_callable(world: ImportWorld) -> None:
    """Eureka has just started, and lists nothing."""
    world.lists()
    found = why(world)
    assert (found.up, found.of) == (2, 2)
    assert found.outcome is Outcome.PARTLY
