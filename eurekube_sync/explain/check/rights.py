"""The rights that a pass and an installation need, and what is missing without each. cronjob/ grants the former."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eurekube_sync.explain.check.findings import Check, Finding, Grade, fails, fine
from eurekube_sync.model.details import Right
from eurekube_sync.model.ports import Installable
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass

_SYNCERS = "eurekube.io"
_DEFINITIONS = "apiextensions.k8s.io"
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """A right, and what does not work without it."""

    right: Right
    without: str
    optional: bool = False
    """A pass goes on without it."""
    where: str | None = None
    """The one namespace, or `""` for the whole cluster; None: the namespaces that are served."""


def of_a_pass(
    *, lock: str | None, gates: bool, nodes: bool, source: str, grants: str | None = None
) -> Sequence[Needed]:
    """`lock` is the namespace of the lock, None without one. `gates`, `nodes`: a syncer or an option needs them.
    `grants`: how Namespaces are read for what they grant, `list` or `get`; None where nobody asks."""
    resource, group = ("endpoints", "") if source == "endpoints" else ("endpointslices", "discovery.k8s.io")
    found = [
        _needed("list", "eurekasyncers", "no syncer is served", group=_SYNCERS),
        _needed("get", "eurekasyncers", "a status that changed meanwhile is not written", group=_SYNCERS),
        _needed("patch", "eurekasyncers", "no finalizer is set, so a deleted syncer leaves orphans", group=_SYNCERS),
        _needed("patch", "eurekasyncers/status", "no syncer says whether it is in sync", group=_SYNCERS),
        _needed("list", "services", "no syncer finds its Services"),
        _needed("list", resource, "no endpoint is found", group=group),
        _needed(
            "list", "pods", "an instance of a dead pod stays until a slice shows that the pod is gone", optional=True
        ),
        _needed("create", "events", "held removals and conflicts make no events", optional=True),
        _needed("patch", "events", "an event that comes again is not counted", optional=True),
        Needed(
            right=Right(verb="get", resource="namespaces", name="kube-system"),
            without="nobody knows which cluster this is, so instances are only renewed",
            where="",
        ),
        Needed(
            right=Right(
                verb="get", resource="customresourcedefinitions", group=_DEFINITIONS, name="eurekasyncers.eurekube.io"
            ),
            without="a syncer may have been deleted together with the CRD, so none of its instances is removed",
            where="",
        ),
    ]
    if grants is not None:
        found.append(_needed(grants, "namespaces", "grants are unknown, so nothing new is registered"))
    if gates:
        found.append(_needed("patch", "pods/status", "pods with the readiness gate are never ready"))
    if nodes:
        found.append(_needed("list", "nodes", "node ports and drained nodes are not found", where=""))
    if lock is not None:
        for verb in ("create", "get", "patch"):
            found.append(
                _needed(verb, "leases", "no copy gets the lock", group="coordination.k8s.io", where=lock, optional=True)
            )
    return found


def of_an_installation(namespace: str) -> Sequence[Needed]:
    """What whoever installs it needs; `namespace` is where it is to run."""
    return [
        _needed("create", "customresourcedefinitions", "the CRD cannot be installed", group=_DEFINITIONS, where=""),
        _needed("create", "clusterroles", "the program cannot get its rights", group=_RBAC, where=""),
        _needed("create", "clusterrolebindings", "the program cannot get its rights", group=_RBAC, where=""),
        _needed("create", "roles", "the right of the lock cannot be granted", group=_RBAC, where=namespace),
        _needed("create", "rolebindings", "the right of the lock cannot be granted", group=_RBAC, where=namespace),
        _needed("create", "serviceaccounts", "the program cannot get an account", where=namespace),
        _needed("create", "cronjobs", "the program cannot run as a CronJob", group="batch", where=namespace),
    ]


def _needed(
    verb: str, resource: str, without: str, *, group: str = "", where: str | None = None, optional: bool = False
) -> Needed:
    return Needed(
        right=Right(verb=verb, resource=resource, group=group), without=without, where=where, optional=optional
    )


def rights(needed: Sequence[Needed], namespaces: Sequence[str], cluster: Installable) -> Iterator[Finding]:
    """A line for each that is missing, and one for all that are there. `namespaces` are those that are served; none
    stands for the whole cluster."""
    there = 0
    for one in needed:
        places = (namespaces or [""]) if one.where is None else [one.where]
        answers = [(place, cluster.may(one.right, place)) for place in places]
        unknown = next((answer for _, answer in answers if isinstance(answer, Unknown)), None)
        if unknown is not None:
            text = f"the rights could not be looked at: {unknown.message}"
            yield fails(Check.RIGHTS, text, "see that the Kubernetes API answers")
            return
        missing = [place for place, answer in answers if answer != Complete(data=True)]
        there += len(answers) - len(missing)
        if missing:
            yield _missing(one, missing)
    if there:
        yield fine(Check.RIGHTS, f"{there} rights are granted")


def _missing(one: Needed, places: Sequence[str]) -> Finding:
    where = "in the whole cluster" if places == [""] else f"in {', '.join(places[:3])}"
    named = f" -n {places[0]}" if places[0] else " -A" if one.where is None else ""
    whole, _, part = one.right.resource.partition("/")
    resource = f"{whole}{f'.{one.right.group}' if one.right.group else ''}"
    resource += f"/{one.right.name}" if one.right.name else ""
    only = f" --subresource {part}" if part else ""
    return Finding(
        check=Check.RIGHTS,
        grade=Grade.WARNING if one.optional else Grade.FAILED,
        text=f"no right to {one.right} {where}: without it {one.without}",
        fix=f"grant it, then ask again: kubectl auth can-i {one.right.verb} {resource}{only}{named}",
    )
