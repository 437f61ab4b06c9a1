"""The story of the demo, in chapters. Every pass in it is the real one, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from eurekube_sync.brake.approval import PlanId
from eurekube_sync.cli.output.stage import Stage
from eurekube_sync.cli.output.words import sentences
from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.kubernetes import EmbeddedKubernetes
from eurekube_sync.embedded.playground import Playground
from eurekube_sync.manifests import load_crd, refusal
from eurekube_sync.model.errors import EurekubeError, Stopped

OWNER = "demo"
NAMESPACE = "rating"
LABELS = {"app": "rating"}
REVIEW = "review"
"""The app that makes it two, so that the brake sees more than one lose all."""

SYNCER: dict[str, Any] = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaSyncer",
    "metadata": {"name": "rating", "namespace": NAMESPACE},
    "spec": {"mode": "pod", "selector": {"app": "rating"}, "port": "http"},
}


def new_playground() -> Playground:
    """Both servers of the demo, to be entered. This Eureka never shows an old list; a real one may, for 30 s."""
    kubernetes = EmbeddedKubernetes(time.time, definitions=[load_crd()], validate=refusal)
    return Playground(kubernetes, EmbeddedEureka(time.time))


def tell(stage: Stage, playground: Playground, world_: World, pause: Callable[[float], None]) -> None:
    """Tells the whole story, with `pause(seconds)` between its chapters.

    Raises Stopped as soon as the clock is stopping, and EurekubeError if the program did not do what the story says.
    """
    prepare(playground)
    _introduce(stage, playground)
    playground.create(SYNCER)
    pause(3)

    stage.chapter(
        "What would happen?",
        "A dry run writes nothing. Three Services select the two pods, and each pod becomes one instance.",
        "The metrics port gets none.",
    )
    stage.command("eurekube-sync run --dry-run")
    _expect(_pass(stage, world_, dry_run=True), registers=2)
    pause(3)

    stage.chapter("Do it")
    _run(stage, world_, registers=2)
    _callers(stage, playground, pause, expected=2)

    stage.chapter("Again: nothing to do", "Leases are renewed. Nothing is written twice.")
    _run(stage, world_)
    pause(2)

    stage.chapter("A pod stops being ready")
    playground.set_ready(NAMESPACE, "rating-2", ready=False)
    _run(stage, world_, updates=1)
    _callers(stage, playground, pause, expected=1)

    stage.chapter("It dies, and another replaces it")
    playground.delete("Pod", NAMESPACE, "rating-2", grace_seconds=0)
    playground.create_pod(NAMESPACE, "rating-3", "10.0.0.3", LABELS)
    _run(stage, world_, registers=1, cancels=1)
    _callers(stage, playground, pause, expected=2)

    _brake(stage, playground, world_, pause)
    _deletion(stage, playground, world_, pause)
    stage.listing("BILLING, which is not ours, was never touched:", playground.instances("billing"))
    stage.line()
    stage.line("That was all. eurekube-sync demo --serve leaves the servers running for you to play with.")


def _brake(stage: Stage, playground: Playground, world_: World, pause: Callable[[float], None]) -> None:
    stage.chapter(
        "All pods vanish",
        "A second app, review, has come to the cluster. Then a bad release gives every Service a wrong selector.",
        "Kubernetes says that these Services have no pods any more. All pods still run, and answer.",
    )
    bring_review(playground)
    _run(stage, world_, registers=1)
    set_selector(playground, "bad-release")
    report = _run(stage, world_)
    if report.held is None:
        raise EurekubeError(f"the demo did not go as planned: nothing is held; {sentences(report)}")
    _callers(stage, playground, pause, expected=2)

    stage.chapter(
        "One command releases the removals",
        "You would use it if the pods were really gone. Callers now find nothing.",
    )
    _run(stage, world_, cancels=3, approved=report.held.plan_id)
    _callers(stage, playground, pause, expected=0)

    stage.chapter("The release is rolled back", "The next pass registers all of them again.")
    set_selector(playground, None)
    _run(stage, world_, registers=3)
    _callers(stage, playground, pause, expected=2)


def _deletion(stage: Stage, playground: Playground, world_: World, pause: Callable[[float], None]) -> None:
    stage.chapter("The syncer is deleted", "A finalizer keeps it until Eureka holds nothing of it.")
    stage.command("kubectl delete esync rating -n rating")
    playground.delete("EurekaSyncer", NAMESPACE, "rating")
    _run(stage, world_, cancels=2)
    _run(stage, world_)
    _callers(stage, playground, pause, expected=0)
    status, _ = playground.kubernetes.call("GET", f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers/rating")
    if status != 404:
        raise EurekubeError(f"the demo's syncer should be gone, but reading it answered {status}")


def _introduce(stage: Stage, playground: Playground) -> None:
    stage.line("eurekube-sync: services in Kubernetes appear in Eureka, so callers outside need no change.")
    stage.chapter(
        "Two small servers run on this machine",
        f"Kubernetes API  {playground.kubernetes_url}",
        f"Eureka          {playground.eureka_url}",
        "BILLING runs in the data centre, as before. rating runs in the cluster: two pods behind three Services",
        "(rating, rating-headless, rating-metrics). Its Helm chart brings this:",
    )
    stage.line("     kind: EurekaSyncer")
    stage.line("     spec: {mode: pod, selector: {app: rating}, port: http}")


def prepare(playground: Playground) -> None:
    """The world before the syncer: a foreign instance, a Service with two pods, and two more Services of them."""
    playground.register("BILLING", "dc-17:billing:8080", "192.0.2.17", 8080)
    for manifest in _cluster():
        playground.create(manifest)
    for number in (1, 2):
        playground.create_pod(NAMESPACE, f"rating-{number}", f"10.0.0.{number}", LABELS)


def bring_review(playground: Playground) -> None:
    """A second app, with one pod and a syncer of its own."""
    labels = {"app": REVIEW}
    playground.create(_service(REVIEW, {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}, labels))
    playground.create_pod(NAMESPACE, "review-1", "10.0.1.1", labels)
    metadata = {"name": REVIEW, "namespace": NAMESPACE}
    playground.create({**SYNCER, "metadata": metadata, "spec": {**SYNCER["spec"], "selector": labels}})


def set_selector(playground: Playground, app: str | None) -> None:
    """Gives each Service a selector that no pod has, or with None its own."""
    for name in ("rating", "rating-headless", "rating-metrics", REVIEW):
        own = REVIEW if name == REVIEW else LABELS["app"]
        playground.change("Service", NAMESPACE, name, {"spec": {"selector": {"app": app or own}}})


def _run(stage: Stage, world_: World, *, approved: str = "", **expected: int) -> PassReport:
    stage.command(f"eurekube-sync run --approve {approved}" if approved else "eurekube-sync run")
    report = _pass(stage, world_, approved=approved)
    _expect(report, **expected)
    return report


def _pass(stage: Stage, world_: World, *, dry_run: bool = False, approved: str = "") -> PassReport:
    approval = PlanId(approved, given=world_.clock.now()) if approved else None
    report = reconcile(world_, PassSettings(owner=OWNER, registry_cache=0, dry_run=dry_run, approved=approval))
    if world_.clock.stopping():  # it was cut short, so what the story expects of it says nothing
        raise Stopped("a signal ended the demo")
    stage.report(report)
    return report


def _expect(report: PassReport, *, registers: int = 0, updates: int = 0, cancels: int = 0) -> None:
    kinds = [type(action).__name__ for action in report.plan.changes if getattr(action, "was", "") is not None]
    found = (kinds.count("Register"), kinds.count("Update"), kinds.count("Cancel"))
    planned = (registers, updates, cancels)
    if found != planned or report.outcomes.failures:
        raise EurekubeError(
            f"the demo did not go as planned: {found} instead of {planned} changes; {sentences(report)}"
        )


def _callers(stage: Stage, playground: Playground, pause: Callable[[float], None], *, expected: int) -> None:
    found = playground.instances("rating")
    stage.listing("Eureka now lists for rating:", found)
    if sum(state == "UP" for _, state in found) != expected:
        raise EurekubeError(f"the demo did not go as planned: {found}")
    pause(3)


def _cluster() -> tuple[dict[str, Any], ...]:
    """A Service `rating` of two pods, and two more Services of the same pods."""
    http = {"name": "http", "port": 80, "targetPort": "http"}
    metrics = {"name": "metrics", "port": 9100, "targetPort": 9100}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _service("rating", {"ports": [http]}),
        _service("rating-headless", {"ports": [http], "clusterIP": "None"}),
        _service("rating-metrics", {"ports": [metrics]}),
    )


def _service(name: str, spec: dict[str, Any], labels: dict[str, str] = LABELS) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"selector": labels, **spec},
    }
