"""All checks in their order: what the others need comes first. And those of the installation itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from eurekube_sync.controller.look import Look, LookWorld, look, with_details
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.check.drain_time import drain_time
from eurekube_sync.explain.check.eureka import replicas, servers
from eurekube_sync.explain.check.findings import Check, Finding, Grade, fails, fine, warns
from eurekube_sync.explain.check.kubernetes import clock, definition, reachable
from eurekube_sync.explain.check.rights import of_a_pass, of_an_installation, rights
from eurekube_sync.explain.links import Mark
from eurekube_sync.explain.registry import RUNS, heartbeat_link
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.ownership import OWNER_PATTERN
from eurekube_sync.model.sources import Unknown

_MOST_NAMESPACES = 50
"""Whose Pods are listed for their drain time."""


def everything(
    seen: LookWorld,
    settings: PassSettings,
    *,
    schema: Mapping[str, Any],
    interval: float,
    namespace: str,
    locked: bool,
    source: str,
    before: bool,
) -> Iterator[Finding]:
    """Each finding as soon as it is known.

    `schema` is that of this version's CRD, `interval` the seconds between two passes, `namespace` that of the
    installation, and `locked` whether it uses a lock there. `source`: slices or endpoints. `before`: nothing is
    installed yet.
    """
    world, cluster = seen.world, seen.installable
    identity = world.cluster.identity()
    found = list(reachable(cluster, identity))
    yield from found
    answers = all(one.grade is Grade.OK for one in found)
    if answers:
        yield clock("the Kubernetes API", cluster.ahead())
        yield from definition(cluster, world.cluster.crd_live(), schema, before=before)
    of_servers = list(servers(seen.servers, world.clock.now()))
    yield from of_servers
    all_read = all(one.grade is Grade.OK for one in of_servers if one.check is Check.EUREKA_READ)
    if before and answers:
        yield from rights(of_an_installation(namespace), (), cluster)
    if before or not answers:
        return
    names = sorted(settings.scope.namespaces or ())
    looked = look(seen, settings, names)
    syncers = list(_syncers(looked))
    needed = of_a_pass(
        lock=namespace if locked else None,
        gates=any(one.spec.get("readinessGate") for one in syncers),
        nodes=Kind.NODE in settings.drains or (looked.report.view is not None and looked.report.view.nodes is not None),
        source=source,
        grants=("get" if names else "list") if settings.scope.granted_only else None,
    )
    yield from replicas(world.registry.batching()) if all_read else ()
    yield from rights(needed, names, cluster)
    yield from owner(looked)
    if looked.heartbeat is not None:
        yield heartbeat(looked)
    claims = looked.report.desired.claims.values() if looked.report.desired else ()
    served = sorted({selected_namespace(one.syncer) for one in claims})
    yield from drain_time(with_details(seen, looked, served[:_MOST_NAMESPACES]), interval)


def _syncers(seen: Look) -> Iterator[SyncerObject]:
    listed = seen.report.view.syncers if seen.report.view else None
    yield from (one for one in (every(listed) if listed else ()) if seen.asked.takes(one))


def owner(look: Look) -> Iterator[Finding]:
    """No other cluster has its name, and no other name stands where its instances would."""
    if not look.owner or not OWNER_PATTERN.fullmatch(look.owner):
        text = "the owner is not known, so other users of its name were not looked for"
        yield warns(Check.OWNER, text, "give --owner as run does")
        return
    registry = look.report.registry
    if isinstance(registry, Unknown):
        return
    clashes, others = registry.data.clashes, look.report.other_owners
    for cluster in clashes:
        text = f"cluster {cluster} has instances of owner {look.owner}, too"
        adopt = f"eurekube-sync owner adopt --cluster {quote(cluster)}"
        fix = f"give each cluster its own owner; if this one replaces it: {adopt}"
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
