"""`demo`: the whole thing in a minute, with neither a cluster nor a Eureka."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.cli.demo import story
from eurekube_sync.cli.demo.story import SYNCER
from eurekube_sync.cli.options.calls import Calls
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import ENVIRONMENT_PREFIX, option
from eurekube_sync.cli.options.eureka import EurekaAccess
from eurekube_sync.cli.options.kubernetes import KubernetesAccess
from eurekube_sync.cli.output.layout import console_for
from eurekube_sync.cli.output.stage import Stage
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.embedded.playground import FolderError, Playground
from eurekube_sync.model.errors import ConfigurationError, Stopped


@click.command(cls=Command, short_help="See it work, with neither a cluster nor a Eureka.")
@option("--serve", is_flag=True, help="Leave both servers running, and print how to use them.")
def command(serve: bool) -> None:
    """See it work: the real program between two embedded servers on loopback."""
    clock = SystemClock()
    with ExitStack() as stack:
        stack.enter_context(stopped_by_signals(clock))
        try:
            playground = stack.enter_context(story.new_playground())
        except FolderError as error:
            raise ConfigurationError(
                f"the demo cannot write its kubeconfig ({error.strerror}): set TMPDIR to a folder that it may write"
            ) from error
        if not serve:
            _tell(playground, clock)
            return
        _serve(playground)
        while not clock.stopping():
            clock.sleep(3600)


def _tell(playground: Playground, clock: SystemClock) -> None:
    unhurried = sys.stdout.isatty()  # a person reads; a pipe does not

    def pause(seconds: float) -> None:
        clock.sleep(seconds if unhurried else 0.0)
        if clock.stopping():
            raise Stopped("a signal ended the demo")

    connection = Connection(
        eureka=EurekaAccess(eureka_url=playground.eureka_url),
        kubernetes=KubernetesAccess(kubeconfig=str(playground.kubeconfig)),
        calls=Calls(concurrency=4),
    )
    with connect(connection, clock) as world:
        try:
            story.tell(Stage(console_for(sys.stdout)), playground, world, pause)
        except Stopped as stopped:
            raise click.Abort from stopped


def _serve(playground: Playground) -> None:
    story.prepare(playground)
    playground.create(SYNCER)
    click.echo("# Both servers run until Ctrl-C. In another terminal:")
    click.echo(f"export KUBECONFIG={playground.kubeconfig}")
    click.echo(f"export {ENVIRONMENT_PREFIX}EUREKA_URL={playground.eureka_url}")
    click.echo(f"export {ENVIRONMENT_PREFIX}OWNER={story.OWNER}")
    click.echo("# eurekube-sync run --dry-run; eurekube-sync run; kubectl get esync -A")
    click.echo(f"# curl -H 'Accept: application/json' {playground.eureka_url}/apps")
    sys.stdout.flush()
