"""All checks in their order: what the others need comes first. And those of the installation itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from eurekube_sync.controller.look import Look, LookWorld, look, with_details
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.check.drain_time import drain_time
from eurekube_sync.explain.check.findings import Check, Finding, Grade
from eurekube_sync.explain.check.rights import of_a_pass, of_an_installation, rights
from eurekube_sync.explain.check.servers import clock, definition, reachable, replicas, servers
from eurekube_sync.explain.links import Mark
from eurekube_sync.explain.registry import RUNS, heartbeat_link
from eurekube_sync.explain.subject import syncers_in
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
    world, cluster = seen.world, seen.details
    yield (kubernetes := reachable(cluster, world.cluster.identity()))
    answers = kubernetes.grade is Grade.OK
    if answers:
        yield clock("the Kubernetes API", cluster.ahead())
        yield definition(cluster, world.cluster.crd_live(), schema, before=before)
    of_servers = list(servers(seen.servers, world.clock.now()))
    yield from of_servers
    if before and answers:
        yield from rights(of_an_installation(namespace), (), cluster)
    if before or not answers:
        return
    names = sorted(settings.scope.namespaces or ())
    looked = look(seen, settings, names)
    view, claims = looked.report.view, looked.report.desired.claims if looked.report.desired else {}
    needed = of_a_pass(
        lock=namespace if locked else None,
        gates=any(one.spec.get("readinessGate") for one in syncers_in(looked.report) if looked.asked.takes(one)),
        nodes=Kind.NODE in settings.drains or (view is not None and view.nodes is not None),
        source=source,
        grants=("get" if names else "list") if settings.scope.granted_only else None,
    )
    all_read = all(one.grade is Grade.OK for one in of_servers if one.check is Check.EUREKA_READ)
    if all_read and (batching := world.registry.batching()):
        yield replicas(batching)
    yield from rights(needed, names, cluster)
    yield from owner(looked)
    if looked.heartbeat is not None:
        yield heartbeat(looked)
    served = sorted({selected_namespace(one.syncer) for one in claims.values()})
    yield from drain_time(with_details(seen, looked, served[:_MOST_NAMESPACES]), interval)


def owner(look: Look) -> Iterator[Finding]:
    """No other cluster has its name, and no other name stands where its instances would."""
    registry, others = look.report.registry, look.report.other_owners
    if not OWNER_PATTERN.fullmatch(look.owner):
        text = "the owner is not known, so other users of its name were not looked for"
        yield Finding(Check.OWNER, Grade.WARNING, text, "give --owner as run does")
        return
    if isinstance(registry, Unknown):
        return
    for cluster in registry.data.clashes:
        text = f"cluster {cluster} has instances of owner {look.owner}, too"
        adopt = f"eurekube-sync owner adopt --cluster {quote(cluster)}"
        fix = f"give each cluster its own owner; if this one replaces it: {adopt}"
        yield Finding(Check.OWNER, Grade.FAILED, text, fix)
    for other in others:
        text = other.question.partition(" Is --owner")[0].rstrip(".")
        yield Finding(Check.OWNER, Grade.FAILED, text, "use that name, or stop one of the two installations")
    if not registry.data.clashes and not others:
        yield Finding(Check.OWNER, Grade.OK, f"owner {look.owner} is used by this cluster alone")


def heartbeat(look: Look) -> Finding:
    """When the last good pass was, by the lock's annotations."""
    link = heartbeat_link(look, alone=True)
    grade = {Mark.OK: Grade.OK, Mark.BROKEN: Grade.FAILED}.get(link.mark, Grade.WARNING)
    fix = link.fix or f"give --owner and --lock as run does, or {RUNS}"
    return Finding(Check.HEARTBEAT, grade, link.text, "" if grade is Grade.OK else fix)
