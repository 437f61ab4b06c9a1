"""The link of the heartbeat: when the last good pass was, who made it, and what it did."""

from __future__ import annotations

from eurekube_sync.controller.look import Look
from eurekube_sync.explain.links import Link, Part, Why, breaks, holds, noted, unseen
from eurekube_sync.model.lock import GoodPass
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import span

SILENT = 150.0
"""Seconds without a good pass: five renewals."""
_LEASE_SECONDS = 600.0
"""How long an instance lives after its last renewal, with the lease that `run` gives by default."""
RUNS = "see that eurekube-sync runs: kubectl get cronjobs,jobs,deployments -A | grep eurekube"


def heartbeat_link(look: Look, *, alone: bool) -> Link:
    """`alone`: nothing else says whether the instances are still renewed, so that a silence is what breaks."""
    beat = look.heartbeat
    if beat is None:
        why = "no heartbeat: this installation uses no lock" if look.owner else "unknown; give --owner to look at it"
        return noted(Part.LAST_PASS, f"last pass: {why}")
    if isinstance(beat.found, Unknown):
        text = f"last pass: the heartbeat {beat.name} could not be looked at: {beat.found.message}"
        return unseen(Part.LAST_PASS, text)
    if beat.found is None:
        return noted(Part.LAST_PASS, f"last pass: no heartbeat: there is no Lease {beat.name} (--lock names another)")
    good = beat.found.good
    if good is None:
        return noted(Part.LAST_PASS, "last pass: no pass was good yet")
    return _of_pass(good, look.at - good.at, alone=alone)


def _of_pass(good: GoodPass, age: float, *, alone: bool) -> Link:
    text = f"last good pass: {span(age)} ago by {good.holder}: {good.result}"
    if age <= SILENT:
        return holds(Part.LAST_PASS, text)
    if not alone:
        return noted(Part.LAST_PASS, text)
    expired = age > _LEASE_SECONDS
    return breaks(
        Part.LAST_PASS,
        Why.EXPIRED if expired else Why.NOT_RENEWED,
        text,
        details=("the leases have expired since" if expired else "the leases expire 10 minutes after it",),
        cause=f"no pass has been good for {span(age)}{', so its leases expired' if expired else ''}",
        fix=RUNS,
    )
