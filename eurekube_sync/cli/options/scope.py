"""Options for the owner, the scope, the drain annotations and the lock."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast

import click

from eurekube_sync.cli import values
from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.desired.scope import Policy, Scope
from eurekube_sync.model.kubernetes import LockName
from eurekube_sync.model.ownership import Former

owner_option = option("--owner", section=Section.WHERE, type=values.OWNER, required=True)

optional_owner_option = option(
    "--owner",
    section=Section.WHERE,
    type=values.OWNER,
    callback=lambda _context, _parameter, given: given or "",
    help="Name of the installation. Default: the owner of this cluster's instances in Eureka, if "
    "there is only one.",
)


def _joined(
    _context: click.Context, _parameter: click.Parameter, given: Iterable[Iterable[Any]]
) -> frozenset[Any]:
    return frozenset().union(*given)


def _all_of(
    _context: click.Context, _parameter: click.Parameter, given: Iterable[str]
) -> frozenset[str]:
    return frozenset(given)


_by_name = (
    option(
        "--namespace",
        "-n",
        "namespaces",
        type=values.NAMESPACES,
        shell_complete=values.complete_namespaces,
        multiple=True,
        callback=lambda *given: _joined(*given) or None,
    ),
)
name_scope_options = group("scope", Scope, *_by_name, section=Section.SCOPE)
"""The options of a `Scope` that need no syncer objects, for commands that do not list syncers."""
scope_options = group(
    "scope",
    Scope,
    *_by_name,
    option(
        "--selector",
        "-l",
        type=values.SELECTOR,
        default=(),
        help="Label selector: only syncers that match it.",
    ),
    option("--syncer-class", type=values.SYNCER_CLASS),
    option(
        "--allow-namespace", "allowed", type=values.NAMESPACE_PAIRS, multiple=True, callback=_joined
    ),
    option("--require-app-grant", "granted_only", is_flag=True),
    option(
        "--policy",
        section=Section.BRAKE,
        type=click.Choice([policy.value for policy in Policy]),
        default=Policy.SYNC.value,
        callback=lambda _context, _parameter, chosen: Policy(chosen),
    ),
    section=Section.SCOPE,
)
"""All options of a `Scope`."""

former_options = group(
    "former",
    Former,
    option("--former-owner", "owners", type=values.OWNER, multiple=True, callback=_all_of),
    option(
        "--former-cluster",
        "clusters",
        type=values.NAME,
        metavar="UID",
        multiple=True,
        callback=_all_of,
    ),
    section=Section.SCOPE,
)
"""The marks of an earlier installation that this one replaces."""

imports_option = option(
    "--import-networks", section=Section.SCOPE, type=values.NETWORKS, metavar="CIDR[,...]"
)
drain_option = option("--drain-annotations", "pod_drains", section=Section.SCOPE, is_flag=True)

LockChoice: TypeAlias = LockName | Literal["auto", "off"]
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_LOCK = re.compile(rf"(?=[^/]{{1,63}}/.{{1,200}}$)({_LABEL})/({_LABEL}(?:\.{_LABEL})*)")
"""Up to 200 characters of a name, of the 253 that Kubernetes allows."""


def _lock(text: str) -> LockChoice:
    if text in ("auto", "off"):
        return cast(LockChoice, text)
    match = _LOCK.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a lock; write auto, off or NAMESPACE/NAME")
    return LockName(namespace=match[1], name=match[2])


lock_option = option(
    "--lock",
    section=Section.WHERE,
    type=values.Value("auto|off|namespace/name", _lock),
    metavar="auto|off|NAMESPACE/NAME",
    default="auto",
)


def lock_name(
    choice: LockChoice, owner: str, scope: Scope, namespace: str | None
) -> LockName | None:
    """Return the name of the lock for a scope; None if none is used. Replicas with another scope do
    other work.

    The parts are joined by a dot, which is not allowed in an owner name. `namespace` is that of our
    pod; None outside of a cluster.
    """
    if choice == "off" or (choice == "auto" and namespace is None):
        return None
    if isinstance(choice, LockName):
        return choice
    name = f"eurekube-sync-{owner}"
    work = Scope(
        namespaces=scope.namespaces, selector=scope.selector, syncer_class=scope.syncer_class
    )
    if work.options:
        digest = hashlib.sha256(" ".join(work.options).encode()).hexdigest()
        name = f"{name}.{digest[:8]}"
    return LockName(namespace=namespace or "", name=name)
