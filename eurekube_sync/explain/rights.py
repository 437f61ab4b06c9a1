"""The rights that a pass and an installation need, and what is missing without each. cronjob/ grants the former."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.model.kubernetes import Right
from eurekube_sync.model.ports import Details
from eurekube_sync.model.sources import Unknown

_SYNCERS = "eurekube.io"
_DEFINITIONS = "apiextensions.k8s.io"
_RBAC = "rbac.authorization.k8s.io"


class Needed(NamedTuple):
    """A right, and what does not work without it."""

    verb: str
    resource: str
    without: str
    group: str = ""
    name: str = ""
    """Of the one object; empty for all."""
    where: str | None = None
    """The one namespace, or `""` for the whole cluster; None: the namespaces that are served."""
    optional: bool = False
    """A pass goes on without it."""


_DELETED_WITH_IT = "a syncer may have been deleted together with the CRD, so none of its instances is removed"
_OF_EACH_PASS = (
    Needed("list", "eurekasyncers", "no syncer is served", _SYNCERS),
    Needed("get", "eurekasyncers", "a status that changed meanwhile is not written", _SYNCERS),
    Needed("patch", "eurekasyncers", "no finalizer is set, so a deleted syncer leaves orphans", _SYNCERS),
    Needed("patch", "eurekasyncers/status", "no syncer says whether it is in sync", _SYNCERS),
    Needed("list", "services", "no syncer finds its Services"),
    Needed("list", "pods", "an instance of a dead pod stays until a slice shows that the pod is gone", optional=True),
    Needed("create", "events", "held removals and conflicts make no events", optional=True),
    Needed("patch", "events", "an event that comes again is not counted", optional=True),
    Needed("get", "namespaces", "nobody knows which cluster this is: a pass only renews", "", "kube-system", ""),
    Needed("get", "customresourcedefinitions", _DELETED_WITH_IT, _DEFINITIONS, "eurekasyncers.eurekube.io", ""),
)


def of_a_pass(
    *, lock: str | None, gates: bool, nodes: bool, source: str, grants: str | None = None
) -> Sequence[Needed]:
    """`lock` is the namespace of the lock, None without one. `gates`, `nodes`: a syncer or an option needs them.
    `grants`: how Namespaces are read for what they grant, `list` or `get`; None where nobody asks."""
    resource, group = ("endpoints", "") if source == "endpoints" else ("endpointslices", "discovery.k8s.io")
    found = [*_OF_EACH_PASS, Needed("list", resource, "no endpoint is found", group)]
    if grants is not None:
        found.append(Needed(grants, "namespaces", "grants are unknown, so nothing new is registered"))
    if gates:
        found.append(Needed("patch", "pods/status", "pods with the readiness gate are never ready"))
    if nodes:
        found.append(Needed("list", "nodes", "node ports and drained nodes are not found", where=""))
    for verb in ("create", "get", "patch") if lock is not None else ():
        without = "no copy gets the lock"
        found.append(Needed(verb, "leases", without, "coordination.k8s.io", where=lock, optional=True))
    return found


def of_an_installation(namespace: str) -> Sequence[Needed]:
    """What whoever installs it needs; `namespace` is where it is to run."""
    no_rights, no_lock = "the program cannot get its rights", "the right of the lock cannot be granted"
    return [
        Needed("create", "customresourcedefinitions", "the CRD cannot be installed", _DEFINITIONS, where=""),
        Needed("create", "clusterroles", no_rights, _RBAC, where=""),
        Needed("create", "clusterrolebindings", no_rights, _RBAC, where=""),
        Needed("create", "roles", no_lock, _RBAC, where=namespace),
        Needed("create", "rolebindings", no_lock, _RBAC, where=namespace),
        Needed("create", "serviceaccounts", "the program cannot get an account", where=namespace),
        Needed("create", "cronjobs", "the program cannot run as a CronJob", "batch", where=namespace),
    ]


def rights(needed: Sequence[Needed], namespaces: Sequence[str], cluster: Details) -> Iterator[Finding]:
    """A line for each that is missing, and one for all that are there. `namespaces` are those that are served; none
    stands for the whole cluster."""
    there = 0
    for one in needed:
        right = Right(verb=one.verb, resource=one.resource, group=one.group, name=one.name)
        missing = []
        for place in (namespaces or [""]) if one.where is None else [one.where]:
            answer = cluster.may(right, place)
            if isinstance(answer, Unknown):
                text = f"the rights could not be looked at: {answer.message}"
                yield Finding(Check.RIGHTS, Grade.FAILED, text, "see that the Kubernetes API answers")
                return
            there += answer.data
            missing += [] if answer.data else [place]
        if missing:
            yield _missing(one, right, missing)
    if there:
        yield Finding(Check.RIGHTS, Grade.OK, f"{there} rights are granted")


def _missing(one: Needed, right: Right, places: Sequence[str]) -> Finding:
    where = "in the whole cluster" if places == [""] else f"in {', '.join(places[:3])}"
    named = f" -n {places[0]}" if places[0] else " -A" if one.where is None else ""
    whole, _, part = one.resource.partition("/")
    resource = ".".join(filter(None, [whole, one.group])) + (f"/{one.name}" if one.name else "")
    only = f" --subresource {part}" if part else ""
    return Finding(
        Check.RIGHTS,
        Grade.WARNING if one.optional else Grade.FAILED,
        f"no right to {right} {where}: without it {one.without}",
        f"grant it, then ask again: kubectl auth can-i {one.verb} {resource}{only}{named}",
    )
