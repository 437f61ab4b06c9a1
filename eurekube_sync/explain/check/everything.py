"""All checks in their order: what the others need comes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eurekube_sync.controller.look import Look, LookWorld, look, with_details
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.check.drain_time import drain_time
from eurekube_sync.explain.check.eureka import replicas, servers
from eurekube_sync.explain.check.findings import Check, Finding, Grade
from eurekube_sync.explain.check.installation import heartbeat, owner
from eurekube_sync.explain.check.kubernetes import clock, definition, reachable
from eurekube_sync.explain.check.rights import Needed, of_a_pass, of_an_installation, rights
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.values import dataclass

_MOST_NAMESPACES = 50
"""Whose Pods are listed for their drain time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is looked at, and how the installation is to run."""

    seen: LookWorld
    settings: PassSettings
    schema: Mapping[str, Any]
    """Of this version's CRD."""
    interval: float
    """Seconds between two passes."""
    namespace: str
    """Where the installation runs, or is to run."""
    locked: bool = True
    """Whether it uses a lock there."""
    source: str = "slices"
    before: bool = False
    """Nothing is installed yet."""


def everything(asked: Checked) -> Iterator[Finding]:
    """Each finding as soon as it is known."""
    world, cluster = asked.seen.world, asked.seen.installable
    identity = world.cluster.identity()
    found = list(reachable(cluster, identity))
    yield from found
    answers = all(one.grade is Grade.OK for one in found)
    if answers:
        yield clock("the Kubernetes API", cluster.ahead())
        yield from definition(cluster, world.cluster.crd_live(), asked.schema, before=asked.before)
    of_servers = list(servers(asked.seen.servers, world.clock.now()))
    yield from of_servers
    all_read = all(one.grade is Grade.OK for one in of_servers if one.check is Check.EUREKA_READ)
    if asked.before:
        if answers:
            yield from rights(of_an_installation(asked.namespace), (), cluster)
        return
    if not answers:
        return
    names = sorted(asked.settings.scope.namespaces or ())
    seen = look(asked.seen, asked.settings, names)
    yield from replicas(world.registry.batching()) if all_read else ()
    yield from rights(_needed(asked, seen), names, cluster)
    yield from owner(seen)
    yield from heartbeat(seen)
    yield from drain_time(_with_pods(asked, seen), asked.interval)


def _needed(asked: Checked, seen: Look) -> Sequence[Needed]:
    syncers = list(_syncers(seen))
    return of_a_pass(
        lock=asked.namespace if asked.locked else None,
        gates=any(one.spec.get("readinessGate") for one in syncers),
        nodes=Kind.NODE in asked.settings.drains or any(one.spec.get("mode") == "service" for one in syncers),
        source=asked.source,
    )


def _syncers(seen: Look) -> Iterator[SyncerObject]:
    listed = seen.report.view.syncers if seen.report.view else None
    yield from (one for one in (every(listed) if listed else ()) if seen.asked.takes(one))


def _with_pods(asked: Checked, seen: Look) -> Look:
    claims = seen.report.desired.claims.values() if seen.report.desired else ()
    names = sorted({selected_namespace(one.syncer) for one in claims})
    return with_details(asked.seen, seen, names[:_MOST_NAMESPACES])
