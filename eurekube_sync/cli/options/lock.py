"""Whether there is a lock, and what it is called."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Literal, TypeAlias

from eurekube_sync.cli.options.declare import Section, option
from eurekube_sync.cli.values import Value
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.lock import LockName

LockChoice: TypeAlias = LockName | Literal["auto", "off"]
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_NAME = re.compile(rf"({_LABEL})/({_LABEL}(?:\.{_LABEL})*)")
_NAMESPACE_CHARACTERS = 63
_NAME_CHARACTERS = 200
"""Kubernetes allows 253; a shard adds some."""


def _lock(text: str) -> LockChoice:
    if text == "auto":
        return "auto"
    if text == "off":
        return "off"
    found = _NAME.fullmatch(text)
    if not found or len(found[1]) > _NAMESPACE_CHARACTERS or len(found[2]) > _NAME_CHARACTERS:
        raise ValueError(f"{text!r} is not a lock; write auto, off or NAMESPACE/NAME")
    return LockName(namespace=found[1], name=found[2])


lock_option = option(
    "--lock",
    section=Section.WHERE,
    type=Value("auto|off|namespace/name", _lock),
    default="auto",
    metavar="auto|off|NAMESPACE/NAME",
    help="Lease object by which only one of several copies of run works at a time. It also shows when the last good "
    "pass was. auto: the Lease in the pod's own namespace. Outside of a cluster, run takes no lock, and other commands "
    "read the Lease in the namespace eurekube-sync. run --dry-run takes no lock, nor does run --approve without "
    "--daemon.",
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
