"""Makes docs/terminal.svg, the README's picture: `python docs/picture.py` writes it.

Every pass in it is the real one, over HTTP on loopback, between both embedded servers. Width, names
and addresses are fixed, so that the same program gives the same picture.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.brake.approval import PlanId
from eurekube_sync.cli.commands import demo as story
from eurekube_sync.cli.commands.demo import LABELS, NAMESPACE, SYNCER
from eurekube_sync.cli.connect import Installation, connect
from eurekube_sync.cli.output.passes import pass_table
from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile

PICTURE = Path(__file__).parent / "terminal.svg"
_WIDTH = 104
_FONTS_FROM_ELSEWHERE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""A picture in a README may load nothing, and any monospaced font will do."""


def draw() -> Console:
    """A console on which the story was printed."""
    console = Console(
        file=io.StringIO(),
        record=True,
        width=_WIDTH,
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    clock = SystemClock()
    with story.new_playground() as playground:
        story.prepare(playground)
        playground.create(SYNCER)
        story.bring_review(playground)
        installation = Installation(
            eureka_url=playground.eureka_url,
            kubeconfig=str(playground.kubeconfig),
            concurrency=1,
        )
        with connect(installation, clock) as world:
            _pass(console, world, "eurekube-sync run --dry-run", dry_run=True)
            _pass(console, world, "eurekube-sync run")
            playground.set_ready(NAMESPACE, "rating-2", ready=False)
            _pass(console, world, "eurekube-sync run", "pod rating-2 has stopped being ready")
            playground.delete("Pod", NAMESPACE, "rating-2")
            playground.create_pod(NAMESPACE, "rating-3", "10.0.0.3", LABELS)
            _pass(
                console, world, "eurekube-sync run", "it is gone, and rating-3 has taken its place"
            )
            story.set_selector(playground, "bad-release")
            held = _pass(
                console,
                world,
                "eurekube-sync run",
                "a bad release: Kubernetes shows no pod of either app",
            ).held
            assert held is not None
            _pass(
                console,
                world,
                f"eurekube-sync run --approve {held.plan_id}",
                "a person wants it",
                held.plan_id,
            )
    return console


def _pass(
    console: Console,
    world: World,
    command: str,
    comment: str = "",
    approved: str = "",
    *,
    dry_run: bool = False,
) -> PassReport:
    remark = f"   # {comment}" if comment else ""
    if console.export_text(clear=False):
        console.print()
    console.print(Text.assemble(("$ ", "dim"), (command, "bold"), (remark, "dim italic")))
    approval = PlanId(approved, given=world.clock.now()) if approved else None
    report = reconcile(world, PassSettings(owner=story.OWNER, dry_run=dry_run, approved=approval))
    console.print(pass_table(report, at_terminal=True))
    return report


def main() -> None:
    """Writes the picture."""
    PICTURE.write_text(_FONTS_FROM_ELSEWHERE.sub("", draw().export_svg(title="eurekube-sync")))


if __name__ == "__main__":
    main()
