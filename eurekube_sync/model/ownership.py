"""The marks in an instance's metadata, and the format of its id. That format can never change: with
a new one, each instance would be registered twice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from sys import intern

from msgspec import Struct

from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import PodRef, SyncerRef

OWNER = "eurekube.owner"
CLUSTER = "eurekube.cluster"
SYNCER = "eurekube.syncer"
CLASS = "eurekube.class"
"""The syncer's class. By it, two installations with one owner know their instances before they have
read Kubernetes."""
POD = "eurekube.pod"
KEYS = "eurekube.keys"
"""The user's metadata keys. A key that is removed from the spec is removed from Eureka, and a
foreign key stays."""

OWNER_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
CLUSTER_PATTERN = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
)  # a UID; wider than those of today's Kubernetes


class Former(Struct, frozen=True, kw_only=True):
    """The marks of an earlier installation that this one replaces (`--former-owner`,
    `--former-cluster`)."""

    owners: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()  # UIDs

    def __bool__(self) -> bool:
        return bool(self.owners or self.clusters)


NO_FORMER = Former()


class Ownership(Struct, frozen=True, kw_only=True):
    """The installation's owner name and the UID of its cluster, and the marks that count as ours
    beside them."""

    owner: str
    cluster: str
    former: Former = NO_FORMER

    def holds(self, instance: ObservedInstance | Instance) -> bool:
        """Whether the instance is ours: owner **and** cluster match, each the present one or a
        former one."""
        owner, cluster = instance.metadata.get(OWNER), instance.metadata.get(CLUSTER)
        of_owner = owner == self.owner or owner in self.former.owners
        return of_owner and (cluster == self.cluster or cluster in self.former.clusters)

    def is_former(self, instance: ObservedInstance | Instance) -> bool:
        """Whether the instance is ours only by a former mark."""
        if not self.former or not self.holds(instance):
            return False
        return instance.metadata[OWNER] != self.owner or instance.metadata[CLUSTER] != self.cluster

    def clashes(self, instance: ObservedInstance) -> bool:
        """Whether the instance has our owner name and another cluster's UID: two clusters have the
        same owner name."""
        cluster = instance.metadata.get(CLUSTER)
        if instance.metadata.get(OWNER) != self.owner or not cluster:
            return False
        return cluster != self.cluster and cluster not in self.former.clusters

    def key_of(self, instance: ObservedInstance) -> InstanceKey:
        """Return the key that this owner gives to the endpoint of an instance with the mark of a
        syncer."""
        syncer = syncer_of(instance)
        assert syncer is not None
        there = instance.instance
        id_ = instance_id(
            owner=self.owner,
            namespace=syncer.namespace,
            app=there.key.app,
            address=there.ip_addr,
            port=there.main_port,
        )
        return InstanceKey(there.key.app, id_)

    def former_keys(self, key: InstanceKey) -> list[InstanceKey]:
        """Return the keys that the former owners gave to the endpoint of one of our keys."""
        _, _, endpoint = key.id.partition(":")  # see `instance_id`: an owner's name has no colon
        return [InstanceKey(key.app, f"{owner}:{endpoint}") for owner in sorted(self.former.owners)]

    def marked(
        self,
        metadata: Mapping[str, str],
        syncer: SyncerRef,
        pod: PodRef | None,
        *,
        pod_namespace: str = "",
        syncer_class: str | None = None,
    ) -> dict[str, str]:
        """Return the user's metadata and our marks. The pod's namespace is a part of its mark if it
        is not the syncer's."""
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
    """Return `owner:namespace:app:address:port`, in `[A-Za-z0-9._:-]`.

    With the owner, an id is unique even if clusters reuse pod networks. Without the syncer's name,
    a renamed syncer keeps its ids. `namespace` is the syncer's, even if its Services are in another
    one, so that only the syncers of a namespace can claim its ids."""
    return f"{owner}:{namespace}:{app.lower()}:{as_in_id(address)}:{port}"


def as_in_id(address: str) -> str:
    """Return an address or host name as `instance_id` writes it: an IPv6 address without colons."""
    return address.replace(":", "-")


def address_in(key: InstanceKey) -> str:
    """Return the address in an id that `instance_id` made, as it stands there."""
    _, address, _ = key.id.rsplit(":", 2)
    return address


@lru_cache(maxsize=65_536)  # called for each instance, and there are few syncers
def _mark(syncer: SyncerRef) -> str:
    return intern(str(syncer))


def syncer_of(instance: ObservedInstance | Instance) -> SyncerRef | None:
    """Return the syncer in an instance's mark, or None without a readable mark."""
    return _read(instance.metadata.get(SYNCER, ""))


@lru_cache(maxsize=65_536)
def _read(mark: str) -> SyncerRef | None:
    namespace, slash, name = mark.partition("/")
    if slash and namespace and name:
        return SyncerRef(namespace, name)
    return None


def pod_uid_of(instance: ObservedInstance | Instance) -> str | None:
    """Return the pod's UID in an instance's mark, or None."""
    _, slash, uid = instance.metadata.get(POD, "").rpartition("/")
    if slash and uid:
        return uid
    return None


def pod_namespace_of(instance: ObservedInstance) -> str | None:
    """Return the namespace of the pod in an instance's mark, or None. Without one in the mark it is
    the syncer's."""
    syncer, parts = syncer_of(instance), instance.metadata.get(POD, "").split("/")
    if len(parts) == 3:
        return parts[0]
    if syncer and len(parts) == 2:
        return syncer.namespace
    return None


def our_keys(metadata: Mapping[str, str]) -> frozenset[str]:
    """Return the user's keys that we wrote beside the marks."""
    return frozenset(key for key in metadata.get(KEYS, "").split(",") if key)
