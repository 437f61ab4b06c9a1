"""Whose instances, which syncers and how far they may reach, where their drains are looked for, and the lock."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import click

from eurekube_sync.cli.options.declare import Section, group, on_command_line, option
from eurekube_sync.cli.values import (
    NAMESPACE_PAIRS,
    NAMESPACES,
    OWNER,
    PART,
    SELECTOR,
    SYNCER_CLASS,
    Value,
    complete_namespaces,
)
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.scope import MOST_INSTANCES, MOST_SYNCERS, Scope
from eurekube_sync.model.kubernetes import LockName

owner_option = option("--owner", section=Section.WHERE, type=OWNER, required=True)

optional_owner_option = option(
    "--owner",
    section=Section.WHERE,
    type=OWNER,
    callback=lambda _context, _parameter, given: given or "",
    help="Name of this installation. Default: the only one whose instances Eureka shows.",
)


def named_owner(owner: str) -> tuple[str, ...]:
    """The option as it was given on this command line; whoever has it in a variable has it in the next shell, too."""
    return ("--owner", owner) if on_command_line("owner") else ()


def _joined(_context: click.Context, _parameter: click.Parameter, given: Iterable[Iterable[Any]]) -> frozenset[Any]:
    return frozenset(one for several in given for one in several)


def _by_name(of: str = "") -> tuple[Callable[[Any], Any], ...]:
    return (
        option(
            "--namespace",
            "-n",
            "namespaces",
            type=NAMESPACES,
            shell_complete=complete_namespaces,
            multiple=True,
            callback=lambda *given: _joined(*given) or None,
            help=f"Only {of}the syncers of this namespace. May be repeated. Default: all.",
        ),
        option(
            "--shard",
            type=PART,
            help=f"Only {of}one part of the syncers. The parts of three are 0/3, 1/3 and 2/3. auto/3 takes the first "
            "number from the index of this pod in an Indexed Job or a StatefulSet.",
        ),
    )


name_scope_options = group("scope", Scope, *_by_name("the instances of "), section=Section.SCOPE)
"""A scope of names alone, of commands that list no syncers; the command gets a `Scope`."""

scope_options = group(
    "scope",
    Scope,
    *_by_name(),
    option("--selector", "-l", type=SELECTOR, default=(), help="Only the syncers with these labels."),
    option("--syncer-class", type=SYNCER_CLASS),
    option("--allow-namespace", "allowed", type=NAMESPACE_PAIRS, multiple=True, callback=_joined),
    option("--require-app-grant", "granted_only", is_flag=True),
    option("--max-syncers-per-namespace", "most_syncers", type=click.IntRange(1), default=MOST_SYNCERS),
    option("--max-instances-per-namespace", "most_instances", type=click.IntRange(1), default=MOST_INSTANCES),
    section=Section.SCOPE,
)
"""All of it; the command gets a `Scope`."""

_KINDS = {"services": frozenset[Kind](), "pods": frozenset({Kind.POD}), "all": frozenset({Kind.POD, Kind.NODE})}


def _drain_option(default: str, more: str = "") -> Callable[[Any], Any]:
    return option(
        "--drain-annotations",
        "drains",
        section=Section.SCOPE,
        type=click.Choice(list(_KINDS)),
        default=default,
        callback=lambda _context, _parameter, chosen: _KINDS[chosen],
        help="Objects whose annotation eurekube.io/drain is read. services: Services; pods: Services and Pods; all: "
        "Services, Pods and Nodes." + more,
    )


drain_option = _drain_option("services")
"""The command gets the kinds beside Services, named `drains`."""
look_for_drains_option = _drain_option("all", " Give the same value as run, whose default is services.")
"""The same for a person who asks what is drained."""

LockChoice: TypeAlias = LockName | Literal["auto", "off"]
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_LOCK = re.compile(rf"(?=[^/]{{1,63}}/.{{1,200}}$)({_LABEL})/({_LABEL}(?:\.{_LABEL})*)")
"""Kubernetes allows 253 letters of a name; a shard adds some."""


def _lock(text: str) -> LockChoice:
    if text == "auto":
        return "auto"
    if text == "off":
        return "off"
    found = _LOCK.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a lock; write auto, off or NAMESPACE/NAME")
    return LockName(namespace=found[1], name=found[2])


lock_option = option(
    "--lock",
    section=Section.WHERE,
    type=Value("auto|off|namespace/name", _lock),
    metavar="auto|off|NAMESPACE/NAME",
    default="auto",
)


def lock_name(choice: LockChoice, owner: str, scope: Scope, namespace: str | None) -> LockName | None:
    """One for each installation and shard, since copies of another scope do other work. The parts are joined by a dot,
    which no owner's name has. `namespace` is the pod's own; None outside of a cluster."""
    if choice == "off" or (choice == "auto" and namespace is None):
        return None
    part = f".{scope.shard.index}-of-{scope.shard.count}" if scope.shard else ""
    if isinstance(choice, LockName):
        return replace(choice, name=f"{choice.name}{part}")
    rest = Scope(namespaces=scope.namespaces, selector=scope.selector, syncer_class=scope.syncer_class).options
    digest = f".{hashlib.sha256(' '.join(rest).encode()).hexdigest()[:8]}" if rest else ""
    return LockName(namespace=namespace or "", name=f"eurekube-sync-{owner}{digest}{part}")
