"""Packs the endpoints of an import into EndpointSlices, with as few writes as possible: each write
of a slice goes to every node. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from eurekube_sync.model.imports import ImportObject, ImportPort, ImportSlice
from eurekube_sync.model.kubernetes import Endpoint, EndpointPort, EndpointSlice

MOST_ENDPOINTS = 100  # of a slice, as the cluster's own controller does


class Group(NamedTuple):
    """What the endpoints of a slice share."""

    address_type: str
    ports: tuple[ImportPort, ...]


class Verb(IntEnum):
    """What is done with a slice, in the order of the writes: what replaces an endpoint is there
    before the endpoint goes, unless one write does both."""

    CREATE = 0
    ADD = 1  # write it with more endpoints
    CHANGE = 2  # write it without some of its endpoints, or with other labels or ports
    DELETE = 3


class SliceWrite(NamedTuple):
    """The write of one slice, as it shall be; of a deleted one, as it is."""

    verb: Verb
    slice: ImportSlice


class _Box(Struct):
    """A slice while it is packed."""

    was: EndpointSlice | None  # None: it does not exist yet
    group: Group | None  # None: it has no wanted endpoint, and any group may take it
    kept: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    changes: bool = False

    @property
    def endpoints(self) -> tuple[str, ...]:
        return (*self.kept, *self.added)

    @property
    def room(self) -> int:
        """How many more it may take; none where a person wrote more than we do."""
        return max(0, MOST_ENDPOINTS - len(self.kept) - len(self.added))

    def take(self, group: Group, addresses: list[str]) -> list[str]:
        """Add the first of these addresses, as far as there is room, and return the rest."""
        room = self.room
        if room and addresses:
            self.group = group
            self.changes = True
            self.added += addresses[:room]
        return addresses[room:]


def pack(
    owner: ImportObject,
    service: str | None,
    wanted: Mapping[Group, Collection[str]],
    slices: Sequence[EndpointSlice],
    taken: Collection[str],
) -> list[SliceWrite]:
    """Return the writes that give the import these addresses, and no others, in their order.

    Each endpoint stays in its slice. A new one goes

    | into                                                     | because                       |
    |----------------------------------------------------------|-------------------------------|
    | a slice of its group that changes anyway                 | that is no further write      |
    | a slice that is empty, or is emptied now                 | it need not be deleted then   |
    | any slice of its group with room                         | that needs no new object      |
    | a new slice                                              |                               |

    An empty slice is deleted, except the import's last. `slices` are the import's own, `taken` are
    the names of all slices of its namespace. `service` None: each slice stays with its Service, and
    only what is in slices may be wanted."""
    by_name = sorted(slices, key=lambda piece: piece.name)
    boxes, missing = _kept_in(wanted, service, by_name)
    _place(missing, boxes)
    writes = _writes(owner, service, boxes, taken)
    return sorted(writes, key=lambda write: write.verb)


def _kept_in(
    wanted: Mapping[Group, Collection[str]], service: str | None, slices: Sequence[EndpointSlice]
) -> tuple[list[_Box], dict[Group, list[str]]]:
    """Return the slices with the endpoints that stay in them, and those that are in none."""
    missing = {group: set(addresses) for group, addresses in wanted.items()}
    groups = _Groups(missing)
    boxes = []
    for piece in slices:
        group = groups.of(piece)
        box = _Box(was=piece, group=group)
        left = missing[group] if group else set()
        for endpoint in piece.endpoints:
            address = endpoint.address
            if address in left:
                left.remove(address)
                box.kept.append(address)
        if not box.kept:
            box.group = None
        box.changes = _differs(piece, box, service)
        boxes.append(box)
    in_none = {group: sorted(addresses) for group, addresses in missing.items()}
    return boxes, in_none


class _Groups:
    """The wanted groups by what their slices have. An app whose instances choose their ports has as
    many groups as instances."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._exact: dict[object, Group] = {}
        self._alike: dict[object, Group] = {}
        for group in groups:
            self._exact[group.address_type, _named(group.ports)] = group
            self._alike[group.address_type, numbers_of(group.ports)] = group

    def of(self, piece: EndpointSlice) -> Group | None:
        """Return the group of a slice. If its ports have another name by now, it is the one with
        the same numbers."""
        exact = self._exact.get((piece.address_type, _named(piece.ports)))
        if exact is not None:
            return exact
        return self._alike.get((piece.address_type, numbers_of(piece.ports)))


Ports: TypeAlias = Sequence[ImportPort] | Sequence[EndpointPort]


def _named(ports: Ports) -> tuple[tuple[str, int | None], ...]:
    return tuple([(port.name, port.port) for port in ports])


def numbers_of(ports: Ports) -> tuple[int | None, ...]:
    """Return the numbers of the ports, in their order."""
    return tuple([port.port for port in ports])


def _differs(piece: EndpointSlice, box: _Box, service: str | None) -> bool:
    """Say whether a slice is not as it shall be, even without a new endpoint."""
    if service not in (None, piece.service):
        return True
    endpoints = [bare(address) for address in box.kept]
    if endpoints != list(piece.endpoints):
        return True
    if box.group is None:
        return False
    return _named(piece.ports) != _named(box.group.ports)


def bare(address: str) -> Endpoint:
    """Return an endpoint as it is written: ready, and without a name, a node or a zone."""
    return Endpoint(address=address)


def _place(missing: Mapping[Group, list[str]], boxes: list[_Box]) -> None:
    """Put the addresses that are in no slice into boxes, by the table of `pack`."""
    by_group: dict[Group, list[_Box]] = {}
    empty: dict[str, list[_Box]] = {}  # by address type, the first one last
    for box in reversed(boxes):
        if box.group is not None:
            by_group.setdefault(box.group, []).insert(0, box)
        else:
            assert box.was is not None  # a new one has a group
            empty.setdefault(box.was.address_type, []).append(box)

    for group in sorted(missing, key=str):
        left = missing[group]
        own = by_group.get(group, [])
        # First in a slice that is written anyway.
        for box in own:
            if box.changes:
                left = box.take(group, left)
        # Then in one that is empty, which need not be deleted then.
        unused = empty.get(group.address_type, [])
        while left and unused:
            box = unused.pop()
            left = box.take(group, left)
        # Then in any with room, and at last in a new one.
        for box in own:
            left = box.take(group, left)
        while left:
            box = _Box(was=None, group=group)
            left = box.take(group, left)
            boxes.append(box)


def _writes(
    owner: ImportObject, service: str | None, boxes: Sequence[_Box], taken: Collection[str]
) -> Iterator[SliceWrite]:
    names = _free_names(owner, taken)
    filled = any(box.endpoints for box in boxes)
    for number, box in enumerate(boxes):
        was = box.was
        if was is None:
            assert box.group is not None  # new slices are made for a group
            made = _new(owner, service or _only_service(boxes), box.group, box, next(names))
            yield SliceWrite(Verb.CREATE, made)
            continue
        if not box.endpoints and (filled or number):  # the first one is the last that is left
            yield SliceWrite(Verb.DELETE, _as_wanted(owner, service, was, box))
        elif box.changes:
            verb = Verb.CHANGE
            if box.added and len(box.kept) == len(was.endpoints):
                verb = Verb.ADD
            yield SliceWrite(verb, _as_wanted(owner, service, was, box))


def _only_service(boxes: Sequence[_Box]) -> str:
    """Return the Service of the slices that are there."""
    first = boxes[0].was
    assert first is not None  # without a Service, only what is in slices stays
    return first.service


def _new(owner: ImportObject, service: str, group: Group, box: _Box, name: str) -> ImportSlice:
    return ImportSlice(
        namespace=owner.namespace,
        name=name,
        service=service,
        address_type=group.address_type,
        ports=group.ports,
        endpoints=box.endpoints,
        owner_uid=owner.uid,
    )


def _as_wanted(
    owner: ImportObject, service: str | None, was: EndpointSlice, box: _Box
) -> ImportSlice:
    ports = valid_ports(was)
    if box.group is not None:
        ports = box.group.ports
    return ImportSlice(
        namespace=was.namespace,
        name=was.name,
        service=service or was.service,
        address_type=was.address_type,
        ports=ports,
        endpoints=box.endpoints,
        owner_uid=owner.uid,
        uid=was.uid,
        resource_version=was.resource_version,
    )


def valid_ports(piece: EndpointSlice) -> tuple[ImportPort, ...]:
    """Return the ports of a slice that an import can have: those with a number."""
    ports = []
    for port in piece.ports:
        if port.port is not None:
            ports.append(ImportPort(name=port.name, port=port.port))
    return tuple(ports)


def _free_names(owner: ImportObject, taken: Collection[str]) -> Iterator[str]:
    """Yield names for new slices. The same import gets the same ones, so a create is safe to
    repeat; another import of this name gets others."""
    digits = hashlib.sha256(owner.uid.encode()).hexdigest()[:5]
    number = 0
    while True:
        name = f"{owner.name}-{digits}-{number}"
        if name not in taken:
            yield name
        number += 1
