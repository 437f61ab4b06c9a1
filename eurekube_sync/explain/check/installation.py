"""The installation itself: who else uses its owner, and when its last good pass was."""

from __future__ import annotations

from collections.abc import Iterator

from eurekube_sync.controller.look import Look
from eurekube_sync.explain.check.findings import Check, Finding, Grade
from eurekube_sync.explain.heartbeat import RUNS, SILENT
from eurekube_sync.explain.spans import span
from eurekube_sync.model.ownership import OWNER_PATTERN
from eurekube_sync.model.sources import Unknown


def owner(look: Look) -> Iterator[Finding]:
    """No other cluster has its name, and no other name stands where its instances would."""
    if not look.owner or not OWNER_PATTERN.fullmatch(look.owner):
        fix = "give --owner as run does"
        yield Finding(
            check=Check.OWNER, grade=Grade.WARNING, text="the owner is not known, so its use was not checked", fix=fix
        )
        return
    registry = look.report.registry
    if isinstance(registry, Unknown):
        return
    clashes, others = registry.data.clashes, look.report.other_owners
    for cluster in clashes:
        text = f"cluster {cluster} has instances of owner {look.owner}, too"
        fix = f"give each cluster its own; if this one replaces it: eurekube-sync owner adopt --cluster {cluster}"
        yield Finding(check=Check.OWNER, grade=Grade.FAILED, text=text, fix=fix)
    for other in others:
        fix = "use that name, or stop one of the two installations"
        yield Finding(
            check=Check.OWNER, grade=Grade.FAILED, text=other.question.partition(" Is --owner")[0].rstrip("."), fix=fix
        )
    if not clashes and not others:
        yield Finding(check=Check.OWNER, grade=Grade.OK, text=f"owner {look.owner} is used by this cluster alone")


def heartbeat(look: Look) -> Iterator[Finding]:
    """When the last good pass was, by the lock's annotations."""
    beat = look.heartbeat
    if beat is None:
        return
    found = beat.found
    if isinstance(found, Unknown):
        text = f"the heartbeat {beat.name} could not be looked at: {found.message}"
        yield Finding(
            check=Check.HEARTBEAT, grade=Grade.WARNING, text=text, fix="grant get on the Lease, or give --lock"
        )
    elif found is None or found.good is None:
        text = f"no heartbeat: {'no good pass yet' if found else f'there is no Lease {beat.name}'}"
        yield Finding(check=Check.HEARTBEAT, grade=Grade.WARNING, text=text, fix=f"give --lock as run does, or {RUNS}")
    else:
        age = look.at - found.good.at
        text = f"the last good pass was {span(age)} ago, by {found.good.holder}"
        if age > SILENT:
            yield Finding(check=Check.HEARTBEAT, grade=Grade.FAILED, text=text, fix=RUNS)
        else:
            yield Finding(check=Check.HEARTBEAT, grade=Grade.OK, text=text)
