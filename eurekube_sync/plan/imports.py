"""The plan for imports: which endpoints come and go, which Services are made, and the writes of
slices. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from eurekube_sync.desired.imports import (
    ByName,
    Ending,
    ImportClaim,
    Importing,
    Socket,
    Wanted,
    may_be_at,
    socket_of,
    sockets_of,
)
from eurekube_sync.desired.scope import Policy
from eurekube_sync.model.actions import Grounds
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.imports import ImportPort, ImportRef, ImportService
from eurekube_sync.model.kubernetes import EndpointSlice, Service, SyncerRef
from eurekube_sync.model.sources import Proof
from eurekube_sync.model.struct import replace
from eurekube_sync.plan.packing import Group, SliceWrite, numbers_of, pack, valid_ports


class Add(Struct, frozen=True, kw_only=True):
    """An endpoint that comes."""

    import_: ImportRef
    wanted: Wanted

    @property
    def socket(self) -> Socket:
        return self.wanted.socket

    @property
    def why(self) -> str:
        return "Eureka lists it UP"


class Drop(Struct, frozen=True, kw_only=True):
    """An endpoint that leaves all slices of its import, as the brake weighs it."""

    import_: ImportRef
    socket: Socket
    why: str
    grounds: Grounds
    proof: Proof  # of the slices; that the instance is gone is proven by Eureka's list
    listed: bool  # whether Eureka lists an instance there, which is left out

    @property
    def key(self) -> InstanceKey:
        """The import in place of an app, and the endpoint in place of an instance."""
        return InstanceKey(str(self.import_), str(self.socket))

    @property
    def syncer(self) -> SyncerRef:
        return SyncerRef(*self.import_)


class Keep(Struct, frozen=True, kw_only=True):
    """An endpoint that stays, although no instance in Eureka's list wants it."""

    import_: ImportRef
    socket: Socket
    why: str


Change: TypeAlias = Add | Drop | Keep


class ServiceWrite(NamedTuple):
    """A Service to make, or of which to write the ports."""

    service: ImportService
    resource_version: str = ""  # empty: it does not exist


class ImportPlan(Struct, frozen=True, kw_only=True):
    """What changes of the endpoints of all imports, sorted."""

    claims: Mapping[ImportRef, ImportClaim] = field(default_factory=dict)
    adds: tuple[Add, ...] = ()
    drops: tuple[Drop, ...] = ()
    keeps: tuple[Keep, ...] = ()
    endings: tuple[ImportRef, ...] = ()  # imports that may go, with all that they own

    @property
    def changes(self) -> tuple[Change, ...]:
        return (*self.adds, *self.drops, *self.keeps)

    @property
    def kept(self) -> Mapping[ImportRef, frozenset[Socket]]:
        """The endpoints that stay, although no instance wants them, by import."""
        kept: dict[ImportRef, set[Socket]] = {}
        for keep in self.keeps:
            kept.setdefault(keep.import_, set()).add(keep.socket)
        return {ref: frozenset(sockets) for ref, sockets in kept.items()}


def plan_imports(
    claims: Mapping[ImportRef, ImportClaim], policy: Policy = Policy.SYNC
) -> ImportPlan:
    """Compare what the imports should have with what their slices have. With the policy
    upsert-only, an endpoint stays whose instance is not listed any more."""
    adds: list[Add] = []
    drops: list[Drop] = []
    keeps: list[Keep] = []
    endings: list[ImportRef] = []
    for ref, claim in sorted(claims.items()):
        if isinstance(claim, Ending):
            endings.append(ref)
            drops += _of_ending(ref, claim)
        elif isinstance(claim, Importing) and not claim.spec.suspend:
            there = set(sockets_of(claim.slices))
            wanted = claim.wanted.keys()
            replaced: dict[str, set[int]] = {}
            if claim.refusals:  # nothing comes in the place of an endpoint
                replaced = _by_address(wanted)
            else:
                for socket in sorted(wanted - there):
                    adds.append(Add(import_=ref, wanted=claim.wanted[socket]))
            for socket in sorted(there - wanted):
                if _is_reached(socket, replaced):
                    why = "its instance has other ports as well, and nothing may be added"
                    keeps.append(Keep(import_=ref, socket=socket, why=why))
                else:
                    drops.append(_drop(ref, claim, socket))
    plan = ImportPlan(
        claims=claims,
        adds=tuple(adds),
        drops=tuple(drops),
        keeps=tuple(keeps),
        endings=tuple(endings),
    )
    if policy is Policy.SYNC:
        return plan
    return _keeping(plan, absent(drops), f"--policy {policy} removes nothing")


def _of_ending(ref: ImportRef, claim: Ending) -> Iterator[Drop]:
    there = set(sockets_of(claim.slices))
    for socket in sorted(there):
        yield Drop(
            import_=ref,
            socket=socket,
            why="the import is being deleted",
            grounds=Grounds.SYNCER_DELETED,
            proof=claim.proof,
            listed=False,
        )


def _drop(ref: ImportRef, claim: Importing, socket: Socket) -> Drop:
    left_out = claim.listed.get(socket)
    why = "Eureka lists no instance there"
    if left_out is not None:
        why = f"{left_out.reason}: {left_out.why}"
    return Drop(
        import_=ref,
        socket=socket,
        why=why,
        grounds=Grounds.ABSENCE,
        proof=claim.proof,
        listed=left_out is not None,
    )


def absent(drops: Iterable[Drop]) -> list[Drop]:
    """Return the drops whose instances Eureka's list does not have. Other Eureka servers may."""
    missing = []
    for drop in drops:
        if not drop.listed and drop.grounds is Grounds.ABSENCE:
            missing.append(drop)
    return missing


def kept_elsewhere(plan: ImportPlan, elsewhere: ByName) -> ImportPlan:
    """Return the plan without the removal of what the imports want by the list of another Eureka
    server, or may want, because it is malformed there: the servers have not replicated it."""
    missing: dict[ImportRef, list[Drop]] = {}
    for drop in absent(plan.drops):
        missing.setdefault(drop.import_, []).append(drop)
    kept: list[Drop] = []
    for ref, drops in missing.items():
        claim = plan.claims[ref]
        assert isinstance(claim, Importing)  # others drop nothing for absence
        there = claim.elsewhere(elsewhere)
        # Of what our list has as well, it decides.
        lacking = there.wanted.keys() - claim.wanted.keys() - claim.listed.keys()
        up = _by_address(lacking)
        for drop in drops:
            # A withdrawn network is a decision about the address, which the slice shows.
            malformed = may_be_at(there.malformed, drop.socket) and claim.may_have(drop.socket)
            if malformed or _is_reached(drop.socket, up):
                kept.append(drop)
    return _keeping(plan, kept, "another Eureka server lists it UP, or malformed")


def _by_address(sockets: Iterable[Socket]) -> dict[str, set[int]]:
    """Return the ports of each address."""
    ports: dict[str, set[int]] = {}
    for socket in sockets:
        ports.setdefault(socket.address, set()).update(socket.numbers)
    return ports


def _is_reached(endpoint: Socket, ports: Mapping[str, set[int]]) -> bool:
    """Say whether a port of the endpoint is among these: its instance, or the spec, may have one
    port more by now, or one less."""
    numbers = ports.get(endpoint.address, set())
    return not numbers.isdisjoint(endpoint.numbers)


def keeping(plan: ImportPlan, held: Collection[InstanceKey], why: str) -> ImportPlan:
    """Return the plan with an endpoint that stays in place of each held removal. An import of which
    an endpoint is held does not go."""
    kept = [drop for drop in plan.drops if drop.key in held]
    return _keeping(plan, kept, why)


def _keeping(plan: ImportPlan, kept: Sequence[Drop], why: str) -> ImportPlan:
    if not kept:
        return plan
    keys = set()
    staying = set()
    keeps = list(plan.keeps)
    for drop in kept:
        keys.add(drop.key)
        staying.add(drop.import_)
        keeps.append(Keep(import_=drop.import_, socket=drop.socket, why=why))
    drops = [drop for drop in plan.drops if drop.key not in keys]
    endings = [ref for ref in plan.endings if ref not in staying]
    return replace(plan, drops=tuple(drops), keeps=tuple(keeps), endings=tuple(endings))


# --- Writes ---------------------------------------------------------------------------------------


class ImportWork(Struct, frozen=True, kw_only=True):
    """The writes of one import, in their order."""

    claim: Importing
    service: ServiceWrite | None = None
    slices: tuple[SliceWrite, ...] = ()


def work_of(plan: ImportPlan, names: Mapping[str, Collection[str]]) -> list[ImportWork]:
    """Return the writes that the plan needs, by import. `names` has the names of all slices by
    namespace: a new one must be free."""
    kept = plan.kept
    work = []
    for ref, claim in sorted(plan.claims.items()):
        if not isinstance(claim, Importing) or claim.spec.suspend:
            continue
        service = _service_write(claim)
        taken = names.get(ref.namespace, ())
        slices = _slice_writes(claim, kept.get(ref, ()), taken)
        if service is not None or slices:
            work.append(ImportWork(claim=claim, service=service, slices=tuple(slices)))
    return work


def _service_write(claim: Importing) -> ServiceWrite | None:
    """Return the write of the Service. It is made even without instances: its ClusterIP is stable
    then, and callers are refused at once."""
    if claim.to_make is None or claim.refusals:
        return None
    if claim.service is None:
        return ServiceWrite(claim.to_make)
    if _has_ports(claim.service, claim.to_make.ports):
        return None
    return ServiceWrite(claim.to_make, claim.service.resource_version)


def _has_ports(service: Service, ports: Sequence[ImportPort]) -> bool:
    """Say whether the ports of our Service are as we made them. Node ports are not ours: the API
    server gives them where a person changed the type, and gives them again after each write."""
    there = [(port.name, port.port, port.target) for port in service.ports]
    made = [(port.name, port.port, None) for port in ports]
    return there == made


def _slice_writes(
    claim: Importing, kept: Collection[Socket], names: Collection[str]
) -> list[SliceWrite]:
    """Return the writes of the slices. While nothing may be added, endpoints only leave, and the
    slices stay as they are otherwise."""
    slices = claim.slices
    if claim.refusals:
        stay = {*claim.wanted, *kept}
        return pack(claim.import_, None, _as_they_are(slices, stay), slices, names)
    service = claim.spec.service.name
    return pack(claim.import_, service, _in_groups(claim, kept), slices, names)


def _in_groups(claim: Importing, kept: Collection[Socket]) -> dict[Group, list[str]]:
    """Return the addresses of the wanted and the kept endpoints by group."""
    groups: dict[Group, list[str]] = {}
    for socket, endpoint in claim.wanted.items():
        group = Group(claim.family, endpoint.ports)
        groups.setdefault(group, []).append(socket.address)
    # A port may have another name by now.
    by_numbers = {_numbers(group): group for group in groups}
    for group, addresses in _as_they_are(claim.slices, kept).items():
        if group not in groups:
            group = by_numbers.get(_numbers(group), group)
        groups.setdefault(group, []).extend(addresses)
    return groups


def _as_they_are(
    slices: Iterable[EndpointSlice], stay: Collection[Socket]
) -> dict[Group, list[str]]:
    """Return the endpoints that stay, in the groups in which they are."""
    groups: dict[Group, list[str]] = {}
    for piece in slices:
        group = Group(piece.address_type, valid_ports(piece))
        for endpoint in piece.endpoints:
            if socket_of(piece, endpoint.address) in stay:
                groups.setdefault(group, []).append(endpoint.address)
    return groups


def _numbers(group: Group) -> tuple[object, ...]:
    return group.address_type, numbers_of(group.ports)
