"""What stood in Eureka when a pass last saw all: taken from a report, written as text, read back with suspicion.

`keepalive` brings instances back from it after Eureka has lost its memory. So it must hold nothing that a pass has
taken away, and nothing may be brought back from a file that is another's, old, or not whole. It holds no credentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from eurekube_sync.actions import Cancel, Update, Withdrawal
from eurekube_sync.desired import Desired
from eurekube_sync.errors import ConfigurationError
from eurekube_sync.exit_codes import ExitCode, of_report
from eurekube_sync.instance import as_it_stands
from eurekube_sync.model import Complete, Instance, InstanceKey, InstanceStatus, LeaseTimes, ObservedInstance, Port
from eurekube_sync.one_pass import PassReport
from eurekube_sync.outcome import Outcomes, Result
from eurekube_sync.ownership import CLASS, CLUSTER, KEYS, OWNER, POD, SYNCER, Ownership, our_keys, syncer_of
from eurekube_sync.scope import Scope

KIND = "eurekube-sync/snapshot"
VERSION = 1
_CLOCKS_DIFFER = 300
"""Seconds that the clocks of two machines may lie apart."""
_MARKS = frozenset({OWNER, CLUSTER, SYNCER, CLASS, POD, KEYS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Whose instances a snapshot holds. Two installations that write one file differ in one of these."""

    owner: str
    cluster: str
    namespaces: tuple[str, ...] | None
    """Of the scope of the pass, sorted; None is the whole cluster."""
    part: str = ""
    """Of these: the scope's shard, selector and class, in words."""

    def __str__(self) -> str:
        namespaces = "" if self.namespaces is None else f", namespaces {', '.join(self.namespaces)}"
        part = f", {self.part}" if self.part else ""
        return f"owner {self.owner}, cluster {self.cluster}{namespaces}{part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The instances that stood. Their status is UP, or DOWN for whatever is not to be brought back."""

    source: Source
    taken: int
    """Unix seconds."""
    instances: Mapping[InstanceKey, Instance]

    @property
    def up(self) -> dict[InstanceKey, Instance]:
        """What may be brought back."""
        return {key: one for key, one in self.instances.items() if one.status is InstanceStatus.UP}

    @property
    def ownership(self) -> Ownership:
        """Who may register them."""
        return Ownership(owner=self.source.owner, cluster=self.source.cluster)

    @property
    def time(self) -> str:
        """When it was taken, RFC 3339."""
        return datetime.fromtimestamp(self.taken, UTC).isoformat().replace("+00:00", "Z")


# --- Taking one ----------------------------------------------------------------------------------------------------


def source_of(report: PassReport, scope: Scope) -> Source | None:
    """Whose the report's instances are; None when the pass does not know."""
    if report.desired is None or not isinstance(report.registry, Complete):
        return None
    ownership = report.registry.data.ownership
    chosen = None if scope.namespaces is None else tuple(sorted(scope.namespaces))
    return Source(owner=ownership.owner, cluster=ownership.cluster, namespaces=chosen, part=str(scope))


def take(report: PassReport, source: Source, now: float) -> Snapshot | None:
    """What stands after a pass that knew all and did all; held removals stand. None after any other pass."""
    good = of_report(report, fail_on_held=False, detailed=False) is ExitCode.OK
    if report.dry_run or not good or report.desired is None or not isinstance(report.registry, Complete):
        return None
    ours = report.registry.data.ours
    standing = {key: instance.status for key, instance in ours.items()}
    for key, outcome in report.outcomes.by_key.items():
        standing.pop(key, None)
        if outcome.status is not None:
            standing[key] = outcome.status
    return Snapshot(
        source=source,
        taken=int(now),
        instances={key: _instance(key, status, report.desired, ours) for key, status in sorted(standing.items())},
    )


def without(snapshot: Snapshot, withdrawals: Iterable[Withdrawal]) -> Snapshot:
    """The same without what is to be cancelled, and DOWN what is to be turned DOWN."""
    going = {action.key: isinstance(action, Cancel) for action in withdrawals}
    instances = {
        key: replace(one, status=InstanceStatus.DOWN) if key in going else one
        for key, one in snapshot.instances.items()
        if not going.get(key, False)
    }
    return snapshot if instances == snapshot.instances else replace(snapshot, instances=instances)


def without_withdrawn(snapshot: Snapshot, outcomes: Outcomes) -> Snapshot:
    """The same without what a pass cancelled, and DOWN what it turned DOWN: a pass that was not good enough for a new
    snapshot must not leave in the old one what `keepalive` would bring back to callers."""
    instances = dict(snapshot.instances)
    for key, outcome in outcomes.by_key.items():
        if key not in instances or outcome.result is not Result.DONE:
            continue
        if isinstance(outcome.action, Cancel):
            del instances[key]
        elif isinstance(outcome.action, Update) and outcome.status is not InstanceStatus.UP:
            instances[key] = replace(instances[key], status=InstanceStatus.DOWN)
    return snapshot if instances == snapshot.instances else replace(snapshot, instances=instances)


def _instance(
    key: InstanceKey, status: InstanceStatus, desired: Desired, ours: Mapping[InstanceKey, ObservedInstance]
) -> Instance:
    """The instance as it would be registered; what no syncer wants any more, as it stands, with our metadata alone."""
    kept = InstanceStatus.UP if status is InstanceStatus.UP else InstanceStatus.DOWN
    wanted = desired.wanted(key)
    if wanted is not None:
        return replace(wanted.instance, status=kept)
    stands = ours[key]
    our_own = _MARKS | our_keys(stands.metadata)
    metadata = {name: value for name, value in stands.metadata.items() if name in our_own}
    return replace(as_it_stands(stands), status=kept, metadata=metadata)


# --- As text -------------------------------------------------------------------------------------------------------

_Seconds = Annotated[int, msgspec.Meta(ge=0)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _PortDocument(msgspec.Struct, rename="camel"):
    number: Annotated[int, msgspec.Meta(ge=0, le=65535)]
    enabled: bool


class _LeaseDocument(msgspec.Struct, rename="camel"):
    renewal_interval_in_secs: _Seconds
    duration_in_secs: _Seconds


class _InstanceDocument(msgspec.Struct, rename="camel"):
    app: _Text
    instance_id: _Text
    host_name: str
    ip_addr: str
    port: _PortDocument
    secure_port: _PortDocument
    vip_address: str
    secure_vip_address: str
    status: InstanceStatus
    lease_info: _LeaseDocument
    metadata: dict[str, str]
    home_page_url: str = ""
    status_page_url: str = ""
    health_check_url: str = ""


class _Envelope(msgspec.Struct):
    kind: str
    version: int


class _SnapshotDocument(msgspec.Struct, rename="camel"):
    kind: str
    version: int
    owner: _Text
    cluster: _Text
    namespaces: list[str] | None
    time: datetime
    instances: list[_InstanceDocument]
    part: str = ""


def to_text(snapshot: Snapshot) -> bytes:
    """The snapshot as a file's content: versioned JSON."""
    document = _SnapshotDocument(
        kind=KIND,
        version=VERSION,
        owner=snapshot.source.owner,
        cluster=snapshot.source.cluster,
        namespaces=None if snapshot.source.namespaces is None else list(snapshot.source.namespaces),
        part=snapshot.source.part,
        time=datetime.fromtimestamp(snapshot.taken, UTC),
        instances=[_written(instance) for instance in snapshot.instances.values()],
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def from_text(text: bytes) -> Snapshot:
    """Reads a file's content; ConfigurationError, a sentence without its subject, for all but a whole snapshot."""
    try:
        envelope = msgspec.json.decode(text, type=_Envelope)
    except (msgspec.ValidationError, UnicodeDecodeError):
        envelope = _Envelope(kind="", version=0)
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"is cut, or no snapshot at all ({error})") from error
    if envelope.kind != KIND:
        raise ConfigurationError("is no snapshot of this program")
    if envelope.version != VERSION:
        raise ConfigurationError(
            f"is a snapshot of version {envelope.version}, and this program reads version {VERSION}: use the same "
            "program that wrote it"
        )
    try:
        document = msgspec.json.decode(text, type=_SnapshotDocument)
        return _checked(document)
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigurationError(f"is a damaged snapshot ({error})") from error


def check(snapshot: Snapshot, *, owner: str, cluster: str | None, now: float, max_age: float) -> None:
    """Raises ConfigurationError unless instances may be brought back from it."""
    if snapshot.source.owner != owner:
        raise ConfigurationError(f"the snapshot is of owner {snapshot.source.owner}, and this is {owner}")
    if cluster is not None and snapshot.source.cluster != cluster:
        raise ConfigurationError(f"the snapshot is of cluster {snapshot.source.cluster}, and --cluster is {cluster}")
    age = now - snapshot.taken
    if age > max_age:
        raise ConfigurationError(
            f"the snapshot is of {snapshot.time}, {age / 3600:.1f} hours old, and --snapshot-max-age is "
            f"{max_age / 3600:g} hours"
        )
    if age < -_CLOCKS_DIFFER:
        raise ConfigurationError(
            f"the snapshot is of {snapshot.time}, which is yet to come: set the clocks of both machines"
        )


def _written(instance: Instance) -> _InstanceDocument:
    return _InstanceDocument(
        app=instance.key.app,
        instance_id=instance.key.id,
        host_name=instance.host_name,
        ip_addr=instance.ip_addr,
        port=_PortDocument(*instance.port),
        secure_port=_PortDocument(*instance.secure_port),
        vip_address=instance.vip_address,
        secure_vip_address=instance.secure_vip_address,
        status=instance.status,
        lease_info=_LeaseDocument(*instance.lease),
        metadata=dict(instance.metadata),
        home_page_url=instance.home_page_url,
        status_page_url=instance.status_page_url,
        health_check_url=instance.health_check_url,
    )


def _checked(document: _SnapshotDocument) -> Snapshot:
    if document.time.tzinfo is None:
        raise ValueError("its time has no zone")
    source = Source(
        owner=document.owner,
        cluster=document.cluster,
        namespaces=None if document.namespaces is None else tuple(document.namespaces),
        part=document.part,
    )
    ownership = Ownership(owner=source.owner, cluster=source.cluster)
    instances = [_read(instance) for instance in document.instances]
    for instance in instances:
        if not ownership.holds(instance) or syncer_of(instance) is None:
            raise ValueError(f"instance {instance.key} does not bear the marks of owner, cluster and syncer")
        if instance.status not in (InstanceStatus.UP, InstanceStatus.DOWN):
            raise ValueError(f"instance {instance.key} has the status {instance.status}")
    by_key = {instance.key: instance for instance in instances}
    if len(by_key) < len(instances):
        raise ValueError("an instance is in it twice")
    return Snapshot(source=source, taken=int(document.time.timestamp()), instances=by_key)


def _read(document: _InstanceDocument) -> Instance:
    return Instance(
        key=InstanceKey(document.app, document.instance_id),
        host_name=document.host_name,
        ip_addr=document.ip_addr,
        port=Port(document.port.number, document.port.enabled),
        secure_port=Port(document.secure_port.number, document.secure_port.enabled),
        vip_address=document.vip_address,
        secure_vip_address=document.secure_vip_address,
        status=document.status,
        lease=LeaseTimes(document.lease_info.renewal_interval_in_secs, document.lease_info.duration_in_secs),
        metadata=document.metadata,
        home_page_url=document.home_page_url,
        status_page_url=document.status_page_url,
        health_check_url=document.health_check_url,
    )
