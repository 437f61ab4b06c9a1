"""The installation itself: who else uses its owner, and when its last good pass was."""

from __future__ import annotations

from collections.abc import Iterator

from eurekube_sync.controller.look import Look
from eurekube_sync.explain.check.findings import Check, Finding, fails, fine, warns
from eurekube_sync.explain.heartbeat import RUNS, heartbeat_link
from eurekube_sync.explain.links import Mark
from eurekube_sync.model.ownership import OWNER_PATTERN
from eurekube_sync.model.sources import Unknown


def owner(look: Look) -> Iterator[Finding]:
    """No other cluster has its name, and no other name stands where its instances would."""
    if not look.owner or not OWNER_PATTERN.fullmatch(look.owner):
        yield warns(Check.OWNER, "the owner is not known, so its use was not checked", "give --owner as run does")
        return
    registry = look.report.registry
    if isinstance(registry, Unknown):
        return
    clashes, others = registry.data.clashes, look.report.other_owners
    for cluster in clashes:
        text = f"cluster {cluster} has instances of owner {look.owner}, too"
        fix = f"give each cluster its own; if this one replaces it: eurekube-sync owner adopt --cluster {cluster}"
        yield fails(Check.OWNER, text, fix)
    for other in others:
        fix = "use that name, or stop one of the two installations"
        yield fails(Check.OWNER, other.question.partition(" Is --owner")[0].rstrip("."), fix)
    if not clashes and not others:
        yield fine(Check.OWNER, f"owner {look.owner} is used by this cluster alone")


def heartbeat(look: Look) -> Finding:
    """When the last good pass was, by the lock's annotations."""
    link = heartbeat_link(look, alone=True)
    match link.mark:
        case Mark.OK:
            return fine(Check.HEARTBEAT, link.text)
        case Mark.BROKEN:
            return fails(Check.HEARTBEAT, link.text, RUNS)
        case _:
            return warns(Check.HEARTBEAT, link.text, f"give --owner and --lock as run does, or {RUNS}")
