"""Whose an instance is: the marks we write into its metadata, the id we give it, and how both are read back. The id
format can never change: a new one would register everything twice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from sys import intern

from eurekube_sync.model.eureka import Instance, ObservedInstance
from eurekube_sync.model.kubernetes import PodRef, SyncerRef
from eurekube_sync.model.values import dataclass

OWNER = "eurekube.owner"
CLUSTER = "eurekube.cluster"
SYNCER = "eurekube.syncer"
CLASS = "eurekube.class"
"""The class that the syncer named when it was written: it tells two installations of one owner whose lease it is before
either has asked its cluster."""
POD = "eurekube.pod"
KEYS = "eurekube.keys"
"""Names of the user's metadata keys that we wrote, so that one taken out of the spec is taken out of Eureka, while a
key that somebody else added stays."""

OWNER_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
CLUSTER_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""A UID: wider than those of Kubernetes are today, and neither markup nor white space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Who we are: the installation's owner name and the UID of its cluster."""

    owner: str
    cluster: str

    def holds(self, instance: ObservedInstance | Instance) -> bool:
        """Whether the instance is ours: owner **and** cluster match."""
        return instance.metadata.get(OWNER) == self.owner and instance.metadata.get(CLUSTER) == self.cluster

    def clashes(self, instance: ObservedInstance) -> bool:
        """Whether it carries our owner name but another cluster's UID: two clusters were given one name."""
        cluster = instance.metadata.get(CLUSTER)
        return instance.metadata.get(OWNER) == self.owner and bool(cluster) and cluster != self.cluster

    def marked(
        self,
        metadata: Mapping[str, str],
        syncer: SyncerRef,
        pod: PodRef | None,
        *,
        pod_namespace: str = "",
        syncer_class: str | None = None,
    ) -> dict[str, str]:
        """The user's metadata with our marks beside it. The pod's namespace is written where it is not the syncer's."""
        marks = {OWNER: self.owner, CLUSTER: self.cluster, SYNCER: _mark(syncer)}
        if syncer_class is not None:
            marks[CLASS] = syncer_class
        if pod is not None:
            elsewhere = f"{pod_namespace}/" if pod_namespace not in ("", syncer.namespace) else ""
            marks[POD] = f"{elsewhere}{pod.name}/{pod.uid}"
        if metadata:
            marks[KEYS] = ",".join(sorted(metadata))
        return {**metadata, **marks}


def instance_id(*, owner: str, namespace: str, app: str, address: str, port: int) -> str:
    """`owner:namespace:app:address:port` in `[A-Za-z0-9._:-]`: unique where clusters reuse pod networks, and the same
    after the syncer was renamed. The colons of an IPv6 address become `-`. The namespace is the syncer's, also where
    its Services are in another: so nobody but the syncers of a namespace can claim its ids, and an id alone tells which
    installation's scope it falls into."""
    return f"{owner}:{namespace}:{app.lower()}:{address.replace(':', '-')}:{port}"


@lru_cache(maxsize=65_536)  # a pass asks for the few syncers of its many instances again and again
def _mark(syncer: SyncerRef) -> str:
    return intern(str(syncer))


def syncer_of(instance: ObservedInstance | Instance) -> SyncerRef | None:
    """The syncer that its mark names, or None without a readable mark."""
    return _named(instance.metadata.get(SYNCER, ""))


@lru_cache(maxsize=65_536)
def _named(mark: str) -> SyncerRef | None:
    namespace, slash, name = mark.partition("/")
    return SyncerRef(namespace, name) if slash and namespace and name else None


def pod_uid_of(instance: ObservedInstance | Instance) -> str | None:
    """UID of the pod that its mark names, or None."""
    _, slash, uid = instance.metadata.get(POD, "").rpartition("/")
    return uid if slash and uid else None


def pod_namespace_of(instance: ObservedInstance) -> str | None:
    """The namespace of the pod that its mark names: the syncer's, unless the mark has its own; None without a mark."""
    syncer, parts = syncer_of(instance), instance.metadata.get(POD, "").split("/")
    if len(parts) == 3:
        return parts[0]
    return syncer.namespace if syncer and len(parts) == 2 else None


def our_keys(metadata: Mapping[str, str]) -> frozenset[str]:
    """The user's keys that we wrote beside the marks."""
    return frozenset(key for key in metadata.get(KEYS, "").split(",") if key)
