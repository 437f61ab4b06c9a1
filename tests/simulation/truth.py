"""What should stand in Eureka, read from the Kubernetes API's own objects by the words of the contract.

An oracle: it shares no code with the product, and remembers since when each thing is true. It knows only what stories
are made of: pods behind Services that a syncer selects by their label `app`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .world import DRAIN, PORT, Key, World

FINALIZER = "eurekube.io/cleanup"
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io"

Ref = tuple[str, str]
"""Namespace and name of a syncer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncerTruth:
    """One syncer as it stands."""

    ref: Ref
    uid: str
    app: str
    """The label that it selects by."""
    app_name: str
    cancels_unready: bool
    deleting: bool
    """A person deleted it; the end of its CRD is nobody's wish."""
    finalizers: tuple[str, ...]
    conditions: Mapping[str, tuple[str, str]]
    """Type to status and reason."""
    served: bool
    """Whether a Service matches."""


@dataclass(slots=True, kw_only=True)
class Since:
    """Something that is true, and since when; `pods` are the UIDs behind it."""

    since: float
    pods: frozenset[str]
    vip: str


@dataclass(slots=True)
class Truth:
    """Brought up to date by `look` after whatever changes the cluster."""

    world: World
    owner: str
    up: dict[Key, Since] = field(default_factory=dict)
    """What is to be UP."""
    frozen: dict[Key, Since] = field(default_factory=dict)
    """What was to be UP when its syncer's last Service went; it stays while its pod lives."""
    down: set[Key] = field(default_factory=set)
    """Unready pods, which stand as DOWN if they ever stood."""
    last_claimed: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """When a syncer of this namespace last wanted this app, in small letters, of the pods with this label."""
    last_ready: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """When a pod of this namespace and label was last ready behind a Service at this address."""
    syncers: dict[Ref, SyncerTruth] = field(default_factory=dict)
    bare_since: dict[Ref, float] = field(default_factory=dict)
    """Since when a syncer that once had our finalizer is without, or gone."""
    pods: frozenset[str] = frozenset()
    drained: dict[str, dict[str, float]] = field(default_factory=dict)
    """By UID of a pod what drains it, `pod` or `node`, and since when."""
    crd_lives: bool = True
    _claims: set[tuple[str, str, str]] = field(default_factory=set)
    _ready: set[tuple[str, str, str]] = field(default_factory=set)
    _revision: int = -1
    _deleted: set[str] = field(default_factory=set)

    def look(self) -> bool:
        """Read the servers again if anything was written; whether it was."""
        if self.world.kubernetes.revision == self._revision:
            return False
        self._revision = self.world.kubernetes.revision
        now = self.world.clock.time
        status, crd = self.world.kubernetes.call("GET", _CRD)
        self.crd_lives = status == 200 and "deletionTimestamp" not in crd["metadata"]
        pods = self.world.pods()
        services = self.world.objects("/api/v1/services")
        self.pods = frozenset(pod["metadata"]["uid"] for pod in pods)
        self.drained = self._drained(pods, now) if self.world.drains else {}
        before = self.syncers
        self.syncers = {syncer.ref: syncer for syncer in self._syncers(services)}
        self._note_finalizers(before, now)
        up: dict[Key, Since] = {}
        self.down = set()
        for syncer in self.syncers.values():
            if not syncer.deleting:
                self._add_wanted(syncer, services, pods, up, now)
        self.down -= set(up)
        self._keep_frozen(before, up, now)
        self.up = up
        claims = {(s.ref[0], s.app_name.lower(), s.app) for s in self.syncers.values() if not s.deleting}
        ready = set(_ready_behind(services, pods))
        # What was true until now was so at the last moment that anybody could have looked.
        self.last_claimed.update(dict.fromkeys(self._claims | claims, now))
        self.last_ready.update(dict.fromkeys(self._ready | ready, now))
        self._claims, self._ready = claims, ready
        return True

    def wanted_since(self, key: Key, *, claimed: float, ready: float) -> bool:
        """Whether somebody who looked for syncers and for ready pods at these moments, or later, may want it UP."""
        namespace, _, ip = key.id.split(":")[1:4]
        labels = {
            claim[2]
            for claim, moment in self.last_claimed.items()
            if claim[:2] == (namespace, key.app.lower()) and (claim in self._claims or moment >= claimed)
        }
        pods = {(namespace, label, ip) for label in labels}
        return bool(pods & self._ready) or any(self.last_ready.get(pod, -1.0) >= ready for pod in pods)

    def _syncers(self, services: list[dict[str, Any]]) -> Iterator[SyncerTruth]:
        for found in self.world.objects("/apis/eurekube.io/v1/eurekasyncers"):
            metadata, spec = found["metadata"], found["spec"]
            uid = metadata["uid"]
            if "deletionTimestamp" in metadata and self.crd_lives:
                self._deleted.add(uid)
            label = spec["selector"]["app"]
            conditions = {c["type"]: (c["status"], c["reason"]) for c in found.get("status", {}).get("conditions", ())}
            yield SyncerTruth(
                ref=(metadata["namespace"], metadata["name"]),
                uid=uid,
                app=label,
                app_name=spec.get("appName", label),
                cancels_unready=spec.get("notReady") == "Cancel",
                deleting=uid in self._deleted,
                finalizers=tuple(metadata.get("finalizers", ())),
                conditions=conditions,
                served=any(_selects(label, metadata["namespace"], service) for service in services),
            )

    def _note_finalizers(self, before: Mapping[Ref, SyncerTruth], now: float) -> None:
        for ref, was in before.items():
            still = self.syncers.get(ref)
            if FINALIZER in was.finalizers and (still is None or FINALIZER not in still.finalizers):
                self.bare_since[ref] = now
        for ref, syncer in self.syncers.items():
            if FINALIZER in syncer.finalizers:
                self.bare_since.pop(ref, None)

    def _add_wanted(
        self,
        syncer: SyncerTruth,
        services: list[dict[str, Any]],
        pods: list[dict[str, Any]],
        up: dict[Key, Since],
        now: float,
    ) -> None:
        namespace = syncer.ref[0]
        for service in services:
            if not _selects(syncer.app, namespace, service):
                continue
            for pod in pods:
                if not _behind(pod, service) or "deletionTimestamp" in pod["metadata"]:
                    continue
                key = self.key(namespace, syncer.app_name, pod["status"]["podIP"])
                uid = pod["metadata"]["uid"]
                if _ready(pod) and uid not in self.drained:
                    known = up.get(key) or self.up.get(key)
                    since = known.since if known else now
                    pods_there = (up[key].pods if key in up else frozenset()) | {uid}
                    up[key] = Since(since=since, pods=pods_there, vip=syncer.app_name.lower())
                elif not syncer.cancels_unready or uid in self.drained:
                    self.down.add(key)

    def _drained(self, pods: list[dict[str, Any]], now: float) -> dict[str, dict[str, float]]:
        nodes = {one["metadata"]["name"] for one in self.world.objects("/api/v1/nodes") if _is_drained(one)}
        found: dict[str, dict[str, float]] = {}
        for pod in pods:
            uid = pod["metadata"]["uid"]
            by = {"pod": _is_drained(pod), "node": pod["spec"].get("nodeName") in nodes}
            before = self.drained.get(uid, {})
            if since := {kind: before.get(kind, now) for kind, is_so in by.items() if is_so}:
                found[uid] = since
        return found

    def _keep_frozen(self, before: Mapping[Ref, SyncerTruth], up: Mapping[Key, Since], now: float) -> None:
        unserved = {
            (ref[0], syncer.app_name.lower())
            for ref, syncer in self.syncers.items()
            if not syncer.served and not syncer.deleting and _same(before.get(ref), syncer)
        }
        candidates = {**self.frozen, **self.up}
        self.frozen = {
            key: was
            for key, was in candidates.items()
            if key not in up and tuple(key.id.split(":")[1:3]) in unserved and was.pods & self.pods
        }

    def key(self, namespace: str, app: str, ip: str) -> Key:
        """`owner:namespace:app:ip:port`, under the app's name in capitals."""
        return Key(
            app.upper(), instance_id(owner=self.owner, namespace=namespace, app=app.lower(), address=ip, port=PORT)
        )


def instance_id(*, owner: str, namespace: str, app: str, address: str, port: int) -> str:
    """The format of the contract."""
    return f"{owner}:{namespace}:{app}:{address}:{port}"


def _same(before: SyncerTruth | None, now: SyncerTruth) -> bool:
    return before is None or (before.uid, before.app_name, before.app) == (now.uid, now.app_name, now.app)


def _selects(label: str, namespace: str, service: Mapping[str, Any]) -> bool:
    metadata = service["metadata"]
    return bool(metadata["namespace"] == namespace and metadata.get("labels", {}).get("app") == label)


def _behind(pod: Mapping[str, Any], service: Mapping[str, Any]) -> bool:
    metadata, selector = pod["metadata"], service["spec"]["selector"]
    return (
        metadata["namespace"] == service["metadata"]["namespace"]
        and selector.items() <= metadata.get("labels", {}).items()
        and bool(pod["status"].get("podIP"))
    )


def _is_drained(found: Mapping[str, Any]) -> bool:
    return bool(found["metadata"].get("annotations", {}).get(DRAIN) == "true")


def _ready_behind(services: list[dict[str, Any]], pods: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for service in services:
        for pod in pods:
            if _behind(pod, service) and _ready(pod) and "deletionTimestamp" not in pod["metadata"]:
                yield service["metadata"]["namespace"], service["metadata"]["labels"]["app"], pod["status"]["podIP"]


def _ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
