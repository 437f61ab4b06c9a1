"""Which syncers are ours, how far they may reach, and where their drains are looked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from eurekube_sync.cli.completing import complete_namespaces
from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import NAMESPACE_PAIRS, NAMESPACES, PART, SELECTOR, SYNCER_CLASS
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.scope import MOST_INSTANCES, MOST_SYNCERS, Scope, Shard
from eurekube_sync.desired.selector import Expression


def _scope(
    namespaces: tuple[tuple[str, ...], ...],
    shard: Shard | None,
    selector: tuple[Expression, ...] | None = None,
    syncer_class: str | None = None,
    allowed: tuple[tuple[tuple[str, str], ...], ...] = (),
    granted_only: bool = False,
    most_syncers: int = MOST_SYNCERS,
    most_instances: int = MOST_INSTANCES,
) -> Scope:
    return Scope(
        namespaces=frozenset(name for names in namespaces for name in names) or None,
        shard=shard,
        selector=selector or (),
        syncer_class=syncer_class,
        allowed=frozenset(pair for pairs in allowed for pair in pairs),
        granted_only=granted_only,
        most_syncers=most_syncers,
        most_instances=most_instances,
    )


def _by_name(of: str = "") -> tuple[Callable[[Any], Any], ...]:
    return (
        option(
            "--namespace",
            "-n",
            "namespaces",
            type=NAMESPACES,
            shell_complete=complete_namespaces,
            multiple=True,
            help=f"Only {of}the syncers of this namespace. May be repeated. Default: all.",
        ),
        option(
            "--shard",
            type=PART,
            default=None,
            help=f"Only {of}one part of the syncers. The parts of three are 0/3, 1/3 and 2/3. auto/3 takes the first "
            "number from the index of this pod in an Indexed Job or a StatefulSet.",
        ),
    )


name_scope_options = group("scope", _scope, *_by_name("the instances of "), section=Section.SCOPE)
"""A scope of names alone, of commands that list no syncers; the command gets a `Scope`."""

scope_options = group(
    "scope",
    _scope,
    *_by_name(),
    option("--selector", "-l", type=SELECTOR, default=None, help="Only the syncers with these labels."),
    option(
        "--syncer-class",
        type=SYNCER_CLASS,
        default=None,
        help="Only the syncers with this spec.syncerClass. Default: those without one.",
    ),
    option(
        "--allow-namespace",
        "allowed",
        type=NAMESPACE_PAIRS,
        multiple=True,
        help="Let syncers of namespace FROM select Services of namespace TO. * is any namespace; may be repeated.",
    ),
    option(
        "--require-app-grant",
        "granted_only",
        is_flag=True,
        help="Serve a syncer only if its Namespace grants the syncer's names and hosts. Grants are the annotations "
        "eurekube.io/allowed-apps and eurekube.io/allowed-hosts.",
    ),
    option(
        "--max-syncers-per-namespace",
        "most_syncers",
        type=click.IntRange(1),
        default=MOST_SYNCERS,
        help="Serve at most this number of syncers in a namespace, the oldest first.",
    ),
    option(
        "--max-instances-per-namespace",
        "most_instances",
        type=click.IntRange(1),
        default=MOST_INSTANCES,
        help="Register nothing new for a namespace that has this number of instances.",
    ),
    section=Section.SCOPE,
)
"""All of it; the command gets a `Scope`."""


_CHOICES = {"services": frozenset[Kind](), "pods": frozenset({Kind.POD}), "all": frozenset({Kind.POD, Kind.NODE})}


def _drain_option(default: str, more: str = "") -> Callable[[Any], Any]:
    return option(
        "--drain-annotations",
        "drains",
        section=Section.SCOPE,
        type=click.Choice(list(_CHOICES)),
        default=default,
        callback=lambda _context, _parameter, chosen: _CHOICES[chosen],
        help="Objects whose annotation eurekube.io/drain is read. services: Services; pods: Services and Pods; all: "
        "Services, Pods and Nodes." + more,
    )


drain_option = _drain_option("services")
"""The command gets the kinds beside Services, named `drains`."""

look_for_drains_option = _drain_option("all", " Give the same value as run, whose default is services.")
"""The same for a person who asks what is drained."""
