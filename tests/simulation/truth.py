"""What should stand in Eureka, read from the Kubernetes API's own objects by the words of the
contract.

An oracle: it shares no code with the product, and remembers since when each thing is true. It knows
only what stories are made of: pods behind Services that a syncer selects by their label `app`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any

from .addresses import reached_at
from .asked import Asked, asked_by
from .serving import (
    Way,
    all_behind,
    is_behind,
    ready_behind,
    serves,
    tells_its_port,
    way_of,
    wished,
)
from .world import (
    DRAIN,
    GATE,
    PORT,
    SERVICE_PORT,
    Key,
    World,
    host_port,
    is_apart,
    is_shelf,
    is_true,
)

FINALIZER = "eurekube.io/cleanup"
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io"

_NO_POD = "no pod"
"""In the place of a pod's UID, for an instance that is a Service's."""

_GATED = Asked(readiness_gate=True)

Ref = tuple[str, str]
"""Namespace and name of a syncer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncerTruth:
    """One syncer as it is now."""

    ref: Ref
    uid: str
    created: str
    app: str
    """The label that its selector names."""
    app_name: str
    asked: Asked
    since: Mapping[str, float]
    """Since when each field of `asked` has its value, by name."""
    deleting: bool
    """Whether a person deleted it. The end of its CRD is nobody's wish."""
    going: bool
    """Whether it has a deletionTimestamp, for any reason."""
    abandoned: bool
    """Whether a person abandoned its deletion."""
    finalizers: tuple[str, ...]
    annotations: Mapping[str, str]
    conditions: Mapping[str, tuple[str, str]]
    """Status and reason by type."""
    messages: Mapping[str, str]
    """Message by type."""
    registered_up: int
    """`status.up`."""
    unknown_since: str
    """`status.eurekaUnknownSince`; empty if it says nothing."""
    served: bool
    """Whether a Service matches, and has an address that the syncer asks for."""
    tells_port: bool
    """Whether its Services have just one port that it may mean."""
    remembers_port: bool
    """Whether its status has the number at which it was served."""


@dataclass(slots=True, kw_only=True)
class Since:
    """Something that is true, and since when; `pods` are the UIDs behind it."""

    since: float
    pods: frozenset[str]
    vip: str
    holder: Ref
    """The syncer that claims it."""
    frozen_at: float | None = None
    """When its syncer's last Service went."""
    serves_since: float | None = None
    """Since when one of its pods should get callers, although no Service selects it any more."""


@dataclass(slots=True)
class Truth:
    """What should be registered. `look` brings it up to date after each change of the cluster."""

    world: World
    owner: str
    eligible: dict[Key, Since] = field(default_factory=dict)
    """Keys that may be UP."""
    up: dict[Key, Since] = field(default_factory=dict)
    """Keys that should be UP: their syncer has no limit and is not suspended."""
    frozen: dict[Key, Since] = field(default_factory=dict)
    """Keys that might be UP when their syncer's last Service went. They stay while their pod
    lives."""
    down: set[Key] = field(default_factory=set)
    """Keys that are not ready, and are DOWN if they were ever registered."""
    eligible_until: dict[Key, float] = field(default_factory=dict)
    """When a key last might be UP."""
    terminating: dict[Key, float] = field(default_factory=dict)
    """When a pod of a key was last seen terminating."""
    pod_count: dict[Ref, int] = field(default_factory=dict)
    """How many pods, ready or not, each syncer has."""
    claimed_until: dict[tuple[str, str, str, Way], float] = field(default_factory=dict)
    """Until when a syncer of this namespace wanted this app, in lower case, of the pods with this
    label that serve in this way. Here and below, what is still so is so until infinity."""
    ready_until: dict[tuple[str, str, str, Way], float] = field(default_factory=dict)
    """Until when a pod of this namespace and label served in this way behind a Service at this
    address."""
    behind_until: dict[tuple[str, str, str, str], float] = field(default_factory=dict)
    """Until when a pod of this namespace, label, address and UID was behind a Service."""
    waiting_until: dict[str, float] = field(default_factory=dict)
    """Until when a pod was ready but for readiness gates, by its UID."""
    syncers: dict[Ref, SyncerTruth] = field(default_factory=dict)
    bare_since: dict[Ref, float] = field(default_factory=dict)
    """Since when a syncer that once had our finalizer has lost it, or is gone."""
    abandoned_since: dict[str, float] = field(default_factory=dict)
    """Since when an abandoned syncer is being deleted, by UID."""
    pods: frozenset[str] = frozenset()
    drained: dict[str, float] = field(default_factory=dict)
    """Since when a pod is drained, by its UID."""
    gates: dict[str, bool] = field(default_factory=dict)
    """Whether our gate is open, by pod UID."""
    opened: dict[str, float] = field(default_factory=dict)
    """Since when our gate is open, by pod UID."""
    labels: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Namespace and label by pod UID."""
    addresses: dict[str, str] = field(default_factory=dict)
    """By pod UID."""
    listening: dict[str, str] = field(default_factory=dict)
    """The address of each ready pod that a Service shows and that does not terminate, by pod
    UID."""
    hosted: dict[str, str] = field(default_factory=dict)
    """The address of its node and the host port of each of these pods that has both, by pod
    UID."""
    crd_lives: bool = True
    crd_uid: str = ""
    shelves: dict[Ref, Mapping[str, Any]] = field(default_factory=dict)
    """Syncers that claim another namespace's addresses. They do not count in what should be UP
    (`neighbours`)."""
    apart: dict[Ref, Mapping[str, Any]] = field(default_factory=dict)
    """Syncers that are served in another way, which do not count there either (`apart`)."""
    _revision: int = -1
    _written: tuple[int, int] = (-1, -1)
    """The counts of writes, and of writes of syncers' statuses, at the last look."""
    _deleted: set[str] = field(default_factory=set)
    _terminating_now: set[Key] = field(default_factory=set)

    def look(self) -> bool:
        """Reads the servers again if anything was written; returns whether it was."""
        if self.world.kubernetes.revision == self._revision:
            return False
        self._revision = self.world.kubernetes.revision
        written = (self.world.kubernetes.structure, self.world.kubernetes.statuses)
        before, self._written = self._written, written
        if written == before:
            return True
        now = self.world.clock.time
        services = [
            one for one in self.world.objects("/api/v1/services") if one["spec"].get("selector")
        ]
        if written[0] != before[0]:
            self._look_at_pods(services, now)
        syncers = self.syncers
        apart = {
            (one["metadata"]["namespace"], one["metadata"]["name"]): one
            for one in self.world.objects("/apis/eurekube.io/v1/eurekasyncers")
            if is_apart(one["metadata"]["name"])
        }
        self.shelves = {ref: syncer for ref, syncer in apart.items() if is_shelf(ref[1])}
        self.apart = {ref: syncer for ref, syncer in apart.items() if not is_shelf(ref[1])}
        self.syncers = {syncer.ref: syncer for syncer in self._syncers(services, now)}
        if written[0] != before[0]:
            self._look_at_claims(services, syncers, now)
        return True

    def _look_at_pods(self, services: list[dict[str, Any]], now: float) -> None:
        status, crd = self.world.kubernetes.call("GET", _CRD)
        self.crd_lives = status == 200 and "deletionTimestamp" not in crd["metadata"]
        self.crd_uid = crd["metadata"]["uid"] if status == 200 else ""
        pods = self.world.pods()
        self.pods = frozenset(pod["metadata"]["uid"] for pod in pods) | {_NO_POD}
        self.drained = self._drained(pods, now) if self.world.drains else {}
        self.gates = {pod["metadata"]["uid"]: is_true(pod, GATE) for pod in pods}
        open_now = [uid for uid, is_open in self.gates.items() if is_open]
        self.opened = {uid: self.opened.get(uid, now) for uid in open_now}
        self.labels = {
            pod["metadata"]["uid"]: (pod["metadata"]["namespace"], pod["metadata"]["labels"]["app"])
            for pod in pods
        }
        self.addresses = {pod["metadata"]["uid"]: pod["status"].get("podIP", "") for pod in pods}
        self.listening = {
            pod["metadata"]["uid"]: pod["status"]["podIP"]
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
            and is_true(pod, "Ready")
            and any(is_behind(pod, service) for service in services)
        }

        self.hosted = {}
        for pod in pods:
            uid, address, port = pod["metadata"]["uid"], pod["status"].get("hostIP"), host_port(pod)
            if uid in self.listening and address is not None and port is not None:
                self.hosted[uid] = f"{address}:{port}"

    def _look_at_claims(
        self, services: list[dict[str, Any]], before: Mapping[Ref, SyncerTruth], now: float
    ) -> None:
        pods = self.world.pods()
        self._note_finalizers(before, now)
        # What may have been over a limit is protected from now on only: a pass that looked before
        # may take it out.
        stood = {
            key: self.up.get(key) or replace(was, since=now) for key, was in self.eligible.items()
        }
        self._claim(services, pods, now)
        self._keep_frozen(before, stood, pods, now)
        claims = {
            (s.ref[0], s.app_name.lower(), s.app, way_of(s.asked))
            for s in self.syncers.values()
            if not s.deleting
        }
        _note_ends(self.claimed_until, claims, now)
        _note_ends(self.ready_until, set(ready_behind(services, pods)), now)
        _note_ends(self.behind_until, set(all_behind(services, pods)), now)
        waiting = {pod["metadata"]["uid"] for pod in pods if serves(pod, _GATED)}
        _note_ends(self.waiting_until, waiting, now)

    @property
    def a_deletion_waits(self) -> bool:
        """Whether a person deleted a syncer that still exists."""
        apart = [*self.shelves.values(), *self.apart.values()]
        going = any("deletionTimestamp" in syncer["metadata"] for syncer in apart)
        return going or any(syncer.deleting for syncer in self.syncers.values())

    def wanted_since(self, key: Key, *, claimed: float, ready: float) -> bool:
        """Whether a process that looked for syncers and for ready pods at these moments, or later,
        may want it UP. Which pods are ready depends on the spec that it read, even if the spec
        changed before it looked at the pods."""
        namespace, _, ip = key.id.split(":")[1:4]
        pods = {(namespace, label, ip, way) for label, way in self._claimed_since(key, claimed)}
        return any(self.ready_until.get(pod, -1.0) >= ready for pod in pods)

    def waits_since(self, key: Key, *, claimed: float, shown: float, listed: float) -> bool:
        """Whether a process that looked for syncers, for Services with their slices, and for pods at
        these moments, or later, may want it UP. A pod behind a gate is as ready as it says itself,
        and it may have become ready after its Service went."""
        namespace, _, ip = key.id.split(":")[1:4]
        gated = {label for label, (_, gate) in self._claimed_since(key, claimed) if gate}
        for (pod_namespace, label, address, uid), until in self.behind_until.items():
            if (pod_namespace, address) != (namespace, ip) or label not in gated:
                continue
            if until >= shown and self.waiting_until.get(uid, -1.0) >= listed:
                return True
        return False

    def _claimed_since(self, key: Key, claimed: float) -> set[tuple[str, Way]]:
        """The labels and ways of the pods that a syncer wanted under this key then, or later."""
        app = (key.id.split(":")[1], key.app.lower())
        return {
            claim[2:]
            for claim, until in self.claimed_until.items()
            if claim[:2] == app and until >= claimed
        }

    def replaced(self, key: Key, uid: str | None) -> bool:
        """Whether another pod has the address of a key."""
        address = key.id.split(":")[3]
        return uid is not None and any(
            at == address and other != uid for other, at in self.addresses.items()
        )

    def keys_of(self, uid: str) -> list[Key]:
        """The keys under which a pod may be registered."""
        names = {
            one.app_name
            for one in self.syncers.values()
            if (one.ref[0], one.app) == self.labels.get(uid)
        }
        return [self.key(self.labels[uid][0], name, self.addresses[uid]) for name in sorted(names)]

    def terminated_since(self, key: Key, moment: float) -> bool:
        """Whether a pod of a key was terminating at that moment or later."""
        return key in self._terminating_now or self.terminating.get(key, -1.0) >= moment

    def rivals(self, syncer: SyncerTruth) -> bool:
        """The other living syncers that claim the same."""
        return any(
            self.are_rivals(other, syncer) for other in self.syncers.values() if not other.deleting
        )

    def are_rivals(self, one: SyncerTruth, other: SyncerTruth) -> bool:
        """Whether two syncers claim the same."""
        names = [(syncer.ref[0], syncer.app, syncer.app_name.lower()) for syncer in (one, other)]
        return one.ref != other.ref and names[0] == names[1]

    def _syncers(self, services: list[dict[str, Any]], now: float) -> Iterator[SyncerTruth]:
        for found in self.world.objects("/apis/eurekube.io/v1/eurekasyncers"):
            metadata, spec, told = found["metadata"], found["spec"], found.get("status", {})
            if is_apart(metadata["name"]):
                continue
            uid, ref = metadata["uid"], (metadata["namespace"], metadata["name"])
            if "deletionTimestamp" in metadata and self.crd_lives:
                self._deleted.add(uid)
            label = spec["selector"]["app"]
            annotations = metadata.get("annotations", {})
            asked = asked_by(spec)
            was = self.syncers.get(ref)
            yield SyncerTruth(
                ref=ref,
                uid=uid,
                created=metadata["creationTimestamp"],
                app=label,
                app_name=spec.get("appName", label),
                asked=asked,
                since=_since(was if was and was.uid == uid else None, asked, now),
                deleting=uid in self._deleted,
                going="deletionTimestamp" in metadata,
                abandoned=annotations.get("eurekube.io/abandon") == "true",
                finalizers=tuple(metadata.get("finalizers", ())),
                annotations=annotations,
                conditions={
                    c["type"]: (c["status"], c["reason"]) for c in told.get("conditions", ())
                },
                messages={c["type"]: c["message"] for c in told.get("conditions", ())},
                registered_up=told.get("up", 0),
                unknown_since=told.get("eurekaUnknownSince", ""),
                remembers_port=bool(told.get("ports")),
                tells_port=tells_its_port(
                    asked, [one for one in services if _selects(label, ref[0], one)]
                ),
                served=any(
                    _selects(label, ref[0], one) and (asked.mode == "pod" or reached_at(one, asked))
                    for one in services
                ),
            )

    def _note_finalizers(self, before: Mapping[Ref, SyncerTruth], now: float) -> None:
        for ref, was in before.items():
            still = self.syncers.get(ref)
            if FINALIZER in was.finalizers and (still is None or FINALIZER not in still.finalizers):
                self.bare_since[ref] = now
        for ref, syncer in self.syncers.items():
            if FINALIZER in syncer.finalizers:
                self.bare_since.pop(ref, None)
            if syncer.going and syncer.abandoned:
                self.abandoned_since.setdefault(syncer.uid, now)

    def _claim(
        self, services: list[dict[str, Any]], pods: list[dict[str, Any]], now: float
    ) -> None:
        """Notes what each syncer wants. Of two that want the same the older one has it, and one
        that is detached comes last."""
        eligible: dict[Key, Since] = {}
        up: dict[Key, Since] = {}
        taken: dict[tuple[str, str], Ref] = {}
        self.down, self.pod_count = set(), {}
        self.terminating.update(dict.fromkeys(self._terminating_now, now))
        self._terminating_now = set()
        living = [syncer for syncer in self.syncers.values() if not syncer.deleting]
        for syncer in sorted(living, key=_precedence):
            wishes = list(self._wishes(syncer, services, pods, now))
            count = 0
            for ip, key, is_up, uid in wishes:
                count += 1
                if is_up is None:
                    continue
                if taken.setdefault((key.app, ip), syncer.ref) != syncer.ref:
                    count -= 1
                elif is_up:
                    self._eligible(key, eligible, self.eligible, uid, syncer, now)
                    if syncer.asked.limit is None and not syncer.asked.suspend:
                        self._eligible(key, up, self.up, uid, syncer, now)
                else:
                    self.down.add(key)
            self.pod_count[syncer.ref] = count
        self.down -= set(eligible)
        self.eligible_until.update(dict.fromkeys({**self.eligible, **eligible}, now))
        self.eligible, self.up = eligible, up

    def _eligible(
        self,
        key: Key,
        found: dict[Key, Since],
        before: Mapping[Key, Since],
        uid: str,
        syncer: SyncerTruth,
        now: float,
    ) -> None:
        was, beside = before.get(key), found.get(key)
        pods = (beside.pods if beside else frozenset()) | {uid}
        # Another pod at the address of one that went is ready since it came.
        since = min(was.since if was and uid in was.pods else now, beside.since if beside else now)
        found[key] = Since(since=since, pods=pods, vip=syncer.app_name.lower(), holder=syncer.ref)

    def _wishes(
        self,
        syncer: SyncerTruth,
        services: list[dict[str, Any]],
        pods: list[dict[str, Any]],
        now: float,
    ) -> Iterator[tuple[str, Key, bool | None, str]]:
        """Yields address, key, whether it should be UP (None: not registered), and the pod's
        UID."""
        namespace, asked = syncer.ref[0], syncer.asked
        seen: set[str] = set()
        for service in services:
            if not _selects(syncer.app, namespace, service):
                continue
            behind = [pod for pod in pods if is_behind(pod, service)]
            if asked.mode == "service":
                some = any(serves(pod, asked) for pod in behind)
                for host in reached_at(service, asked):
                    key = self.key(namespace, syncer.app_name, host, SERVICE_PORT)
                    yield host, key, wished(some, asked), _NO_POD
                continue
            for pod in behind:
                key = self.key(namespace, syncer.app_name, pod["status"]["podIP"])
                if "deletionTimestamp" in pod["metadata"]:
                    self._terminating_now.add(key)
                it_serves, uid = serves(pod, asked), pod["metadata"]["uid"]
                if uid in seen:
                    continue  # one instance, however many Services select it
                seen.add(uid)
                wish = False if uid in self.drained else wished(it_serves, asked)
                if it_serves or "deletionTimestamp" not in pod["metadata"]:
                    yield pod["status"]["podIP"], key, wish, uid

    def _drained(self, pods: list[dict[str, Any]], now: float) -> dict[str, float]:
        uids = [pod["metadata"]["uid"] for pod in pods if _is_drained(pod)]
        return {uid: self.drained.get(uid, now) for uid in uids}

    def _keep_frozen(
        self,
        before: Mapping[Ref, SyncerTruth],
        stood: Mapping[Key, Since],
        pods: Sequence[Mapping[str, Any]],
        now: float,
    ) -> None:
        unserved = {
            (ref, ref[0], syncer.app_name.lower()): syncer.asked
            for ref, syncer in self.syncers.items()
            if not syncer.served and not syncer.deleting and _same(before.get(ref), syncer)
        }
        frozen = {}
        for key, was in {**stood, **self.frozen}.items():
            namespace, app = key.id.split(":")[1:3]
            asked = unserved.get((was.holder, namespace, app))
            if key in self.eligible or asked is None or not was.pods & self.pods:
                continue
            some = any(serves(pod, asked) for pod in pods if pod["metadata"]["uid"] in was.pods)
            begins = was.frozen_at is None
            since = was.since if begins else now if was.serves_since is None else was.serves_since
            frozen[key] = replace(
                was,
                frozen_at=now if begins else was.frozen_at,
                serves_since=since if some or _NO_POD in was.pods else None,
            )
        self.frozen = frozen

    def key(self, namespace: str, app: str, ip: str, port: int = PORT) -> Key:
        """Gives the key: `owner:namespace:app:ip:port`, under the app's name in upper case."""
        return Key(
            app.upper(),
            instance_id(
                owner=self.owner, namespace=namespace, app=app.lower(), address=ip, port=port
            ),
        )


def _precedence(syncer: SyncerTruth) -> tuple[bool, str, Ref]:
    """Sorts older syncers first. One that is detached keeps nothing that another wants."""
    claims_nothing = (
        syncer.asked.limit is not None
        and syncer.asked.limit.value == 0
        and not syncer.asked.suspend
    )
    return (claims_nothing, syncer.created, syncer.ref)


def instance_id(*, owner: str, namespace: str, app: str, address: str, port: int) -> str:
    """Gives an id in the format of the contract."""
    return f"{owner}:{namespace}:{app}:{address}:{port}"


def _note_ends(until: dict[Any, float], true: Set[Any], now: float) -> None:
    """Notes what is true now. What was so until now was so at the last moment that anybody could
    have looked."""
    for what, end in until.items():
        if end == inf and what not in true:
            until[what] = now
    until.update(dict.fromkeys(true, inf))


def _since(was: SyncerTruth | None, asked: Asked, now: float) -> Mapping[str, float]:
    return {
        one.name: was.since[one.name]
        if was and getattr(was.asked, one.name) == getattr(asked, one.name)
        else now
        for one in fields(Asked)
    }


def _same(before: SyncerTruth | None, now: SyncerTruth) -> bool:
    if before is None:
        return True
    asked = (before.uid, before.app_name, before.app, before.asked.mode)
    return asked == (now.uid, now.app_name, now.app, now.asked.mode)


def _selects(label: str, namespace: str, service: Mapping[str, Any]) -> bool:
    metadata = service["metadata"]
    return bool(
        metadata["namespace"] == namespace and metadata.get("labels", {}).get("app") == label
    )


def _is_drained(found: Mapping[str, Any]) -> bool:
    return bool(found["metadata"].get("annotations", {}).get(DRAIN) == "true")
