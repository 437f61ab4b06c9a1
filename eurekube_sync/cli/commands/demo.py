"""The command `demo`: real passes over HTTP between two embedded servers, without a cluster or a
Eureka."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import click
from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.brake.approval import PlanId
from eurekube_sync.cli.connect import Installation, connect
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import ENVIRONMENT_PREFIX, option
from eurekube_sync.cli.output.passes import pass_table
from eurekube_sync.cli.output.table import console_for
from eurekube_sync.cli.process import stopped_by_signals
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes
from eurekube_sync.embedded.playground import Playground
from eurekube_sync.manifests.crd import load_crds
from eurekube_sync.manifests.validation import refusal, stored
from eurekube_sync.model.errors import ConfigurationError, EurekubeError, Stopped
from eurekube_sync.model.struct import replace

OWNER = "demo"
NAMESPACE = "rating"
LABELS = {"app": "rating"}
# A second app, because the brake holds removals if more than one app loses its last instance
REVIEW = "review"
SYNCER: dict[str, Any] = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaSyncer",
    "metadata": {"name": "rating", "namespace": NAMESPACE},
    "spec": {"mode": "pod", "selector": {"app": "rating"}, "port": "http"},
}

IMPORT: dict[str, Any] = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaImport",
    "metadata": {"name": "billing", "namespace": NAMESPACE},
    "spec": {"app": "billing"},
}
NETWORK = "192.0.2.0/24"  # of the data centre


@click.command(cls=Command, short_help="Try it without a cluster or a Eureka.")
@option("--serve", is_flag=True, help="Leave both servers running, and print how to use them.")
def demo_command(serve: bool) -> None:
    """Try it: the real program between two embedded servers on loopback."""
    clock = SystemClock()
    with stopped_by_signals(clock), ExitStack() as stack:
        try:
            playground = stack.enter_context(new_playground())
        except OSError as error:
            raise ConfigurationError(
                f"the demo could not start ({error.strerror}): it needs a loopback address, and a "
                "folder that it may write, which TMPDIR can name"
            ) from error
        if serve:
            _serve(playground, clock)
        else:
            _tell(playground, clock)


def _serve(playground: Playground, clock: SystemClock) -> None:
    prepare(playground)
    playground.create(SYNCER)
    click.echo("# Both servers run until Ctrl-C. In another terminal:")
    click.echo(f"export KUBECONFIG={playground.kubeconfig}")
    click.echo(f"export {ENVIRONMENT_PREFIX}EUREKA_URL={playground.eureka_url}")
    click.echo(f"export {ENVIRONMENT_PREFIX}OWNER={OWNER}")
    click.echo("# eurekube-sync run --dry-run; eurekube-sync run; kubectl get esync -A")
    click.echo(f"# curl -H 'Accept: application/json' {playground.eureka_url}/apps")
    sys.stdout.flush()
    while not clock.stopping():
        clock.sleep(3600)


def _tell(playground: Playground, clock: SystemClock) -> None:
    at_terminal = sys.stdout.isatty()

    def pause(seconds: float) -> None:
        clock.sleep(seconds if at_terminal else 0.0)
        if clock.stopping():
            raise Stopped("a signal ended the demo")

    installation = Installation(
        eureka_url=playground.eureka_url, kubeconfig=str(playground.kubeconfig), concurrency=4
    )
    with connect(installation, clock) as world:
        try:
            Story(console_for(sys.stdout), playground, world, pause).tell()
        except Stopped as stopped:
            raise click.Abort from stopped


class Story:
    """The story, in chapters, with `pause(seconds)` between them."""

    def __init__(
        self, console: Console, playground: Playground, world: World, pause: Callable[[float], None]
    ) -> None:
        self._console = console
        self._playground = playground
        self._world = world
        self._pause = pause
        self._chapter = 0

    def tell(self) -> None:
        """Tell the story. Raises Stopped after a signal, and EurekubeError if a pass has an
        unexpected result."""
        playground = self._playground
        prepare(playground)
        self._introduce()
        playground.create(SYNCER)
        self._pause(3)

        self.chapter(
            "What would happen?",
            "A dry run writes nothing. Three Services select the two pods, and each pod becomes "
            "one instance.",
            "The metrics port gets none.",
        )
        self._run(up=0, dry_run=True)
        self._pause(3)

        self.chapter("Do it")
        self._run(up=2, shows=True)

        self.chapter("Again: nothing to do", "Leases are renewed. Nothing is written twice.")
        self._run(up=2)
        self._pause(2)

        self.chapter("A pod stops being ready")
        playground.set_ready(NAMESPACE, "rating-2", ready=False)
        self._run(up=1, shows=True)

        self.chapter("It dies, and another replaces it")
        playground.delete("Pod", NAMESPACE, "rating-2")
        playground.create_pod(NAMESPACE, "rating-3", "10.0.0.3", LABELS)
        self._run(up=2, shows=True)

        self._brake()
        self._deletion()
        self._other_direction()
        self.listing(
            "BILLING, which is not ours, was never touched:", playground.instances("billing")
        )
        self.line()
        self.line(
            "That was all. eurekube-sync demo --serve leaves the servers running for you to play "
            "with."
        )

    def _introduce(self) -> None:
        self.line(
            "eurekube-sync: services in Kubernetes appear in Eureka, so callers outside need no "
            "change."
        )
        self.chapter(
            "Two small servers run on this machine",
            f"Kubernetes API  {self._playground.kubernetes_url}",
            f"Eureka          {self._playground.eureka_url}",
            "BILLING runs in the data centre, as before. rating runs in the cluster: two pods "
            "behind three Services",
            "(rating, rating-headless, rating-metrics). Its Helm chart brings this:",
        )
        self.line("     kind: EurekaSyncer")
        self.line("     spec: {mode: pod, selector: {app: rating}, port: http}")

    def _brake(self) -> None:
        self.chapter(
            "All pods vanish",
            "A second app, review, has come to the cluster. A bad deployment gives every Service "
            "a wrong selector.",
            "Kubernetes says that these Services have no pods any more. All pods still run, and "
            "answer.",
        )
        bring_review(self._playground)
        self._run(up=2)
        set_selector(self._playground, "bad-release")
        report = self._run(up=2, shows=True)
        plan_id = ""
        if report.held is not None:
            plan_id = report.held.plan_id

        self.chapter(
            "One command releases the removals",
            "You would use it if the pods were really gone. Callers now find nothing.",
        )
        self._run(up=0, approved=plan_id, shows=True)

        self.chapter("The bad deployment is undone", "The next pass registers all of them again.")
        set_selector(self._playground, None)
        self._run(up=2, shows=True)

    def _deletion(self) -> None:
        self.chapter(
            "The syncer is deleted", "A finalizer keeps it until Eureka holds nothing of it."
        )
        self.command("kubectl delete esync rating -n rating")
        self._playground.delete("EurekaSyncer", NAMESPACE, "rating")
        self._run(up=0)
        self._run(up=0, shows=True)

    def _other_direction(self) -> None:
        self.chapter(
            "The other way round",
            "BILLING stays in the data centre. With this, pods call it by name: http://billing",
        )
        self.line("     kind: EurekaImport")
        self.line("     spec: {app: billing}")
        self._playground.create(IMPORT)
        self._run(up=0, networks=NETWORK)
        self.listing("Service billing now leads to:", self._playground.endpoints("billing"))
        self._pause(3)

    def _run(
        self,
        *,
        up: int,
        dry_run: bool = False,
        approved: str = "",
        networks: str = "",
        shows: bool = False,
    ) -> PassReport:
        """Run a pass, and check that `up` instances of rating are UP after it. `shows` lists
        them."""
        command = "eurekube-sync run"
        settings = PassSettings(owner=OWNER, registry_cache=0, dry_run=dry_run)
        if dry_run:
            command += " --dry-run"
        if approved:
            command += f" --approve {approved}"
            approval = PlanId(approved, given=self._world.clock.now())
            settings = replace(settings, approved=approval)
        if networks:
            command += f" --import-networks {networks}"
            settings = replace(settings, import_networks=(networks,))
        self.command(command)
        report = reconcile(self._world, settings)
        if self._world.clock.stopping():  # the pass was cut short
            raise Stopped("a signal ended the demo")
        self._print(report)
        code = of_report(report, fail_on_held=False, detailed=False)
        instances = self._playground.instances("rating")
        statuses = [status for _, status in instances]
        if code is not ExitCode.OK or statuses.count("UP") != up:
            why = code.meaning or code.name
            raise EurekubeError(f"the demo did not go as planned: {why}; {instances}")
        if shows:
            self.listing("Eureka now lists for rating:", instances)
            self._pause(3)
        return report

    def _print(self, report: PassReport) -> None:
        """Print the report of a pass, indented below its command."""
        margin = Segment("   ")
        narrower = self._console.options.update(width=self._console.width - 3)
        for line in self._console.render_lines(pass_table(report), narrower, pad=False):
            self._console.print(Segments([margin, *line, Segment.line()]))

    def chapter(self, title: str, *sentences: str) -> None:
        self._chapter += 1
        self.line()
        self._console.print(Text(f"{self._chapter}. {title}", style="bold cyan"))
        for sentence in sentences:
            self.line(f"   {sentence}")

    def command(self, line: str) -> None:
        self._console.print(Text.assemble(("   $ ", "dim"), (line, "bold")))

    def listing(self, title: str, lines: Sequence[tuple[str, str]]) -> None:
        """Print instances, each with its status."""
        self.line(f"   {title}")
        for name, status in lines:
            style = "yellow"
            if status == "UP":
                style = "green"
            self._console.print(Text.assemble(f"     {name:<24}", (status, style)))
        if not lines:
            self._console.print(Text("     nothing", style="dim"))

    def line(self, text: str = "") -> None:
        self._console.print(Text(text))


def new_playground() -> Playground:
    """Return both servers of the demo. Unlike a real Eureka, this one does not cache its lists."""
    kubernetes = EmbeddedKubernetes(
        time.time, definitions=load_crds(), validate=refusal, conform=stored
    )
    return Playground(kubernetes, EmbeddedEureka(time.time))


def prepare(playground: Playground) -> None:
    """Create a foreign instance, and three Services with the same two pods."""
    playground.register("BILLING", "dc-17:billing:8080", "192.0.2.17", 8080)
    http = {"name": "http", "port": 80, "targetPort": "http"}
    metrics = {"name": "metrics", "port": 9100, "targetPort": 9100}
    playground.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    playground.create(_service("rating", {"ports": [http]}))
    playground.create(_service("rating-headless", {"ports": [http], "clusterIP": "None"}))
    playground.create(_service("rating-metrics", {"ports": [metrics]}))
    for number in (1, 2):
        playground.create_pod(NAMESPACE, f"rating-{number}", f"10.0.0.{number}", LABELS)


def bring_review(playground: Playground) -> None:
    """Create a second app, with one pod and its own syncer."""
    labels = {"app": REVIEW}
    http = {"name": "http", "port": 80, "targetPort": "http"}
    playground.create(_service(REVIEW, {"ports": [http]}, labels))
    playground.create_pod(NAMESPACE, "review-1", "10.0.1.1", labels)
    metadata = {"name": REVIEW, "namespace": NAMESPACE}
    spec = {**SYNCER["spec"], "selector": labels}
    playground.create({**SYNCER, "metadata": metadata, "spec": spec})


def set_selector(playground: Playground, app: str | None) -> None:
    """Let each Service select the pods of `app`, or with None its own."""
    for name in ("rating", "rating-headless", "rating-metrics", REVIEW):
        own = LABELS["app"]
        if name == REVIEW:
            own = REVIEW
        selector = {"app": app or own}
        playground.change("Service", NAMESPACE, name, {"spec": {"selector": selector}})


def _service(name: str, spec: dict[str, Any], labels: dict[str, str] = LABELS) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"selector": labels, **spec},
    }
