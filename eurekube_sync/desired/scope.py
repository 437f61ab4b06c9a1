"""What a pass may change. Namespace and shard are reported by a syncer's name; labels and class only by the syncer
itself, so they are applied after a complete list: what such a list does not show is gone, and not merely somebody
else's."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace

from eurekube_sync.desired.selector import Expression
from eurekube_sync.desired.spec import class_of, selected_namespace
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.values import dataclass

ANY = "*"
MOST_SYNCERS, MOST_INSTANCES = 10_000, 100_000
"""Of one namespace, by default: more than a registry can serve to its clients, so that nobody meets them by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One of `count` equal parts of all syncers, counted from 0."""

    index: int
    count: int

    def holds(self, syncer: SyncerRef) -> bool:
        """Whether the syncer falls into this part, by a hash of `namespace/name`, which orphans have, too: jump
        consistent hash (Lamping and Veach, 2014). With one part more only those move that come into it, so a change of
        N moves few syncers to another process."""
        key = int.from_bytes(hashlib.sha256(str(syncer).encode()).digest()[:8], "big")
        part, following = 0, 0
        while following < self.count:
            part = following
            key = (key * 2862933555777941757 + 1) % 2**64
            following = int((part + 1) * (2**31 / ((key >> 33) + 1)))
        return part == self.index

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose instances a pass may change; by default those of every syncer without a class."""

    namespaces: frozenset[str] | None = None
    """None: every one."""
    shard: Shard | None = None
    selector: tuple[Expression, ...] = ()
    """On the labels of the syncers."""
    syncer_class: str | None = None
    """Of `spec.syncerClass`; None: syncers that name no class."""
    allowed: frozenset[tuple[str, str]] = frozenset()
    """From the syncer's namespace to the Services', where these differ; `*` is any."""
    granted_only: bool = False
    """Syncers are served only where their Namespace grants what they register."""
    most_syncers: int = MOST_SYNCERS
    most_instances: int = MOST_INSTANCES
    """Of a namespace, that are served and registered."""
    elsewhere: frozenset[SyncerRef] = field(default=frozenset(), repr=False)
    """Syncers that a list showed to be somebody else's, by label or class."""

    @property
    def share(self) -> float:
        """Which part of an installation it is: a shard's absolute limits are this share of the whole."""
        return 1 / self.shard.count if self.shard else 1.0

    @property
    def options(self) -> tuple[str, ...]:
        """What gives another command line the same scope."""
        found = [word for name in sorted(self.namespaces or ()) for word in ("-n", name)]
        found += ["--shard", str(self.shard)] if self.shard else []
        found += ["--selector", ",".join(str(one) for one in self.selector)] if self.selector else []
        found += ["--syncer-class", self.syncer_class] if self.syncer_class else []
        for source, target in sorted(self.allowed):
            found += ["--allow-namespace", f"{source}:{target}"]
        found += ["--require-app-grant"] if self.granted_only else []
        if self.most_syncers != MOST_SYNCERS:
            found += ["--max-syncers-per-namespace", str(self.most_syncers)]
        if self.most_instances != MOST_INSTANCES:
            found += ["--max-instances-per-namespace", str(self.most_instances)]
        return tuple(found)

    def covers(self, syncer: SyncerRef) -> bool:
        """Whether the syncer of this name is ours, as far as is known: one that is gone is, too."""
        return (
            (self.namespaces is None or syncer.namespace in self.namespaces)
            and syncer not in self.elsewhere
            and (self.shard is None or self.shard.holds(syncer))
        )

    def takes(self, syncer: SyncerObject) -> bool:
        """Whether this syncer is ours to serve."""
        return (
            class_of(syncer) == self.syncer_class
            and all(expression.matches(syncer.labels) for expression in self.selector)
            and self.covers(syncer.ref)
        )

    def knowing(self, syncers: Listed[SyncerObject]) -> Scope:
        """The same, with what the lists that are complete tell of labels and classes."""
        lists = [source.data for source in syncers.by_namespace.values() if isinstance(source, Complete)]
        return replace(self, elsewhere=frozenset(one.ref for some in lists for one in some if not self.takes(one)))

    def over_quota(self, syncers: Listed[SyncerObject]) -> frozenset[SyncerRef]:
        """The syncers beyond the quota of their namespace, of all shards together: the older ones are served, of one
        age by name. One that is being deleted has no place."""
        whole, over = replace(self, shard=None), set[SyncerRef]()
        for source in syncers.by_namespace.values():
            if isinstance(source, Complete) and len(source.data) > self.most_syncers:
                ours = [one for one in source.data if one.deleted is None and whole.takes(one)]
                by_age = sorted(ours, key=lambda one: (one.created, one.ref))
                over.update(one.ref for one in by_age[self.most_syncers :])
        return frozenset(over)

    def may_select(self, syncer: SyncerObject) -> bool:
        """Whether the syncer may have Services of the namespace that it names."""
        return self.may_reach(syncer.namespace, selected_namespace(syncer))

    def may_reach(self, own: str, other: str) -> bool:
        """Whether syncers of the one namespace may select in the other: their own, or one that the operator allows."""
        return own == other or any(source in (ANY, own) and target in (ANY, other) for source, target in self.allowed)

    def __str__(self) -> str:
        """What sets it apart from another installation's, but for the namespaces; empty for all."""
        parts = [f"shard {self.shard}"] if self.shard else []
        parts += [f"selector {', '.join(str(one) for one in self.selector)}"] if self.selector else []
        parts += [f"class {self.syncer_class}"] if self.syncer_class else []
        return "; ".join(parts)
