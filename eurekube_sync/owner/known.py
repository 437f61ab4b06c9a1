"""What `purge` and `orphans` need of both servers, or they refuse."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import TypeVar

from eurekube_sync.model.errors import OwnerClash, SourceUnknown
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.ownership import CLUSTER, Ownership
from eurekube_sync.model.sources import Server, Source, Unknown
from eurekube_sync.model.text import some_of

T = TypeVar("T")


def known(source: Source[T], server: Server) -> T:
    """Return the data of a source; raise SourceUnknown for an Unknown one."""
    if isinstance(source, Unknown):
        raise SourceUnknown(server, source)
    return source.data


def in_order(registry: Iterable[ObservedInstance]) -> list[ObservedInstance]:
    return sorted(registry, key=lambda instance: instance.key)


def refuse_clash(registry: Iterable[ObservedInstance], ownership: Ownership) -> None:
    """Raise OwnerClash if another cluster uses the owner's name."""
    clusters: list[str] = []
    keys: list[str] = []
    for instance in in_order(registry):
        if ownership.clashes(instance):
            clusters.append(instance.metadata[CLUSTER])
            keys.append(str(instance.key))
    if not keys:
        return
    other = clusters[0]
    names = some_of(keys, 5)
    raise OwnerClash(
        f"owner {ownership.owner} is used by cluster {other} ({names}): take another name. If this "
        f"cluster replaces it: eurekube-sync run --former-cluster {quote(other)}"
    )
