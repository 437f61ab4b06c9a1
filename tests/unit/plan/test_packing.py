"""The packing of an import's endpoints into slices: as few writes as changes, and nothing lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.model.imports import MANAGER, ImportObject, ImportPort, ImportSlice
from eurekube_sync.model.kubernetes import Endpoint, EndpointPort, EndpointSlice
from eurekube_sync.model.struct import replace
from eurekube_sync.plan import packing
from eurekube_sync.plan.packing import Group, SliceWrite, Verb, pack

OWNER = ImportObject(
    namespace="shop",
    name="review",
    uid="9c41",
    generation=1,
    resource_version="1",
    created=1000,
)


def group(number: int = 8080, *, name: str = "http", family: str = "IPv4") -> Group:
    return Group(family, (ImportPort(name=name, port=number),))


HTTP, OTHER = group(), group(9090)
BOTH = Group("IPv4", (*HTTP.ports, ImportPort(name="https", port=8443)))


def stored(slice_: ImportSlice, version: str = "1") -> EndpointSlice:
    """The slice as the API server lists it."""
    return EndpointSlice(
        namespace=slice_.namespace,
        name=slice_.name,
        service=slice_.service,
        address_type=slice_.address_type,
        ports=tuple(EndpointPort(name=port.name, port=port.port) for port in slice_.ports),
        endpoints=tuple(Endpoint(address=address) for address in slice_.endpoints),
        managed_by=MANAGER,
        uid=slice_.uid or f"uid-of-{slice_.name}",
        resource_version=version,
        owner_uid=slice_.owner_uid,
    )


def after(slices: Iterable[EndpointSlice], writes: Iterable[SliceWrite]) -> list[EndpointSlice]:
    """The slices after these writes, which may not name a slice twice or a stale one."""
    there = {piece.name: piece for piece in slices}
    for verb, wanted in writes:
        old = there.pop(wanted.name, None)
        assert (old is None) is (verb is Verb.CREATE)
        if old is not None:
            assert (wanted.uid, wanted.resource_version) == (old.uid, old.resource_version)
            assert wanted.address_type == old.address_type
        if verb is not Verb.DELETE:
            assert len(wanted.endpoints) <= packing.MOST_ENDPOINTS
            there[wanted.name] = stored(wanted, version=f"{len(wanted.endpoints)}-{verb}")
    return list(there.values())


def sockets(
    slices: Iterable[EndpointSlice],
) -> list[tuple[tuple[tuple[str, int | None], ...], str]]:
    """The ports and address of each endpoint, with those that are there twice."""
    found = []
    for piece in slices:
        for endpoint in piece.endpoints:
            found.append((tuple((port.name, port.port) for port in piece.ports), endpoint.address))
    return sorted(found)


def asked(wanted: Mapping[Group, Collection[str]]) -> list[tuple[tuple[tuple[str, int], ...], str]]:
    found = []
    for of, addresses in wanted.items():
        ports = tuple((port.name, port.port) for port in of.ports)
        found += [(ports, address) for address in addresses]
    return sorted(found)


def packed(
    wanted: Mapping[Group, Collection[str]],
    slices: Sequence[EndpointSlice] = (),
    taken: Collection[str] = (),
) -> list[SliceWrite]:
    names = {piece.name for piece in slices}
    return pack(OWNER, "review", wanted, slices, names.union(taken))


def piece(
    *addresses: str, number: int = 0, of: Group = HTTP, service: str = "review"
) -> EndpointSlice:
    """A slice of the import."""
    return stored(
        ImportSlice(
            namespace="shop",
            name=f"review-3f393-{number}",
            service=service,
            address_type=of.address_type,
            ports=of.ports,
            endpoints=addresses,
            owner_uid=OWNER.uid,
        )
    )


def told(writes: Iterable[SliceWrite]) -> list[tuple[str, tuple[str, ...]]]:
    return [(verb.name, wanted.endpoints) for verb, wanted in writes]


def test_a_slice_with_more_endpoints_than_we_write_takes_no_other() -> None:
    """A person, or another version, wrote it. Each endpoint stays in its slice."""
    many = [f"10.20.1.{number}" for number in range(150)]
    new = [f"10.20.2.{number}" for number in range(60)]
    writes = packed({HTTP: [*many, *new]}, [piece(*many)])
    assert told(writes) == [("CREATE", tuple(sorted(new)))]


def test_endpoints_that_only_stay_need_a_new_slice_where_a_person_wrote_too_many() -> None:
    """Nothing is added to the import, so nobody says for which Service: it is that of its slices."""
    many = [f"10.20.1.{number}" for number in range(150)]
    odd = piece(*many)
    odd = replace(odd, ports=(*odd.ports, EndpointPort(name="odd", port=None)))
    writes = pack(OWNER, None, {HTTP: many}, [odd], {odd.name})
    assert [wanted.service for _, wanted in writes] == ["review", "review"]
    assert sorted(address for _, wanted in writes for address in wanted.endpoints) == sorted(many)


def test_an_app_whose_instances_choose_their_ports_is_packed_in_time_for_a_pass() -> None:
    """It has a group for each instance. The time must not grow with their square."""
    wanted = {group(8000 + number): [f"10.20.0.{number % 200}"] for number in range(3000)}
    begun = process_time()
    slices = after([], packed(wanted))
    assert packed(wanted, slices) == []
    assert process_time() - begun < 2


ADDRESSES = st.sets(st.integers(1, 9).map(lambda number: f"10.20.0.{number}"))
WANTED = st.dictionaries(st.sampled_from([HTTP, OTHER, BOTH]), ADDRESSES)


@given(st.lists(WANTED, max_size=6))
def test_each_step_writes_what_changed_and_leaves_nothing_for_the_next(
    steps: list[dict[Group, set[str]]],
) -> None:
    """Nothing is lost or there twice, no pass writes more slices than endpoints changed, and an
    equal registry writes nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "MOST_ENDPOINTS", 3)
        slices: list[EndpointSlice] = []
        for wanted in steps:
            before = set(sockets(slices))
            writes = packed(wanted, slices)
            slices = after(slices, writes)
            assert sockets(slices) == asked(wanted)
            assert len(writes) <= len(before.symmetric_difference(asked(wanted)))
            assert packed(wanted, slices) == []


@given(WANTED, st.lists(st.tuples(st.sampled_from([HTTP, OTHER, BOTH]), ADDRESSES), max_size=4))
def test_whatever_a_person_wrote_into_our_slices_one_pass_mends_it(
    wanted: dict[Group, set[str]], edited: list[tuple[Group, set[str]]]
) -> None:
    """An endpoint may then be in two slices, and a slice may have too many."""
    slices = [
        piece(*sorted(there), number=number, of=of) for number, (of, there) in enumerate(edited)
    ]
    slices = after(slices, packed(wanted, slices))
    assert sockets(slices) == asked(wanted)
    assert packed(wanted, slices) == []


def test_a_new_import_gets_one_slice_of_at_most_100_for_each_set_of_ports() -> None:
    """The names come from the import's name and UID, and pass over those that are taken."""
    many = [f"10.20.{number // 256}.{number % 256}" for number in range(101)]
    writes = packed({HTTP: many, BOTH: ["10.20.9.9"]}, taken=["review-3f393-1"])
    assert sorted(len(wanted.endpoints) for _, wanted in writes) == [1, 1, 100]
    digits = writes[0].slice.name.split("-")[1]
    assert len(digits) == 5
    names = [wanted.name for _, wanted in writes]
    assert names == [f"review-{digits}-{number}" for number in range(3)]
    taken = [f"review-{digits}-1"]
    assert [wanted.name for _, wanted in packed({HTTP: many}, taken=taken)] == [
        f"review-{digits}-0",
        f"review-{digits}-2",
    ]
    other = replace(OWNER, uid="another")
    assert pack(other, "review", {HTTP: many}, [], [])[0].slice.name not in names


def test_a_new_endpoint_goes_into_a_slice_that_changes_anyway() -> None:
    """Not into another one with room."""
    slices = [piece("10.20.0.1", number=0), piece("10.20.0.2", "10.20.0.3", number=1)]
    writes = packed({HTTP: ["10.20.0.1", "10.20.0.2", "10.20.0.4"]}, slices)
    assert told(writes) == [("CHANGE", ("10.20.0.2", "10.20.0.4"))]


def test_an_emptied_slice_takes_the_endpoints_of_another_port() -> None:
    """That is one write, where a deletion and a creation would be two."""
    writes = packed({OTHER: ["10.20.0.1"]}, [piece("10.20.0.1")])
    assert told(writes) == [("CHANGE", ("10.20.0.1",))]
    assert writes[0].slice.ports == OTHER.ports


def test_what_replaces_an_endpoint_is_written_before_the_endpoint_goes() -> None:
    """New slices first, then those that only get more, and deletions last."""
    slices = [
        piece("fd00::1", number=0, of=group(family="IPv6")),
        piece("10.20.0.2", number=1, of=OTHER),
        piece("10.20.0.3", "10.20.0.4", number=2, of=BOTH),
    ]
    wanted = {OTHER: ["10.20.0.2", "10.20.0.5"], BOTH: ["10.20.0.3"], HTTP: ["10.20.0.6"]}
    verbs = [verb for verb, _ in packed(wanted, slices)]
    assert verbs == [Verb.CREATE, Verb.ADD, Verb.CHANGE, Verb.DELETE]


def test_the_last_slice_stays_when_it_is_empty_and_the_others_go() -> None:
    """The cluster keeps an empty one for a Service with a selector, too."""
    slices = [piece("10.20.0.1", number=0), piece("10.20.0.2", number=1)]
    writes = packed({}, slices)
    assert told(writes) == [("CHANGE", ()), ("DELETE", ())]
    assert writes[0].slice.ports == HTTP.ports
    assert packed({}, after(slices, writes)) == []
    assert packed({}, []) == []


@pytest.mark.parametrize(
    "edited",
    [
        piece("10.20.0.1", service="other"),
        replace(piece("10.20.0.1"), endpoints=(Endpoint(address="10.20.0.1", ready=False),)),
        replace(piece("10.20.0.1"), endpoints=(Endpoint(address="10.20.0.1", zone="a"),)),
        replace(piece("10.20.0.1"), ports=(EndpointPort(name="web", port=8080),)),
        replace(piece("10.20.0.1"), ports=(EndpointPort(name="http", port=None),)),
        replace(piece("10.20.0.1"), ports=()),
    ],
    ids=["label", "readiness", "zone", "port name", "no number", "no port"],
)
def test_a_slice_that_a_person_edited_is_written_again(edited: EndpointSlice) -> None:
    """In one write, and its endpoint stays in it."""
    (write,) = packed({HTTP: ["10.20.0.1"]}, [edited])
    assert write.verb is Verb.CHANGE or edited.ports[:1] != piece().ports
    (mended,) = after([edited], [write])
    assert replace(mended, resource_version="1") == piece("10.20.0.1")


def test_a_port_without_a_number_is_not_written_into_the_empty_slice() -> None:
    """The API server takes it, and kube-proxy ignores it."""
    odd = replace(piece("10.20.0.1"), ports=(EndpointPort(name="http", port=None),))
    (write,) = packed({}, [odd])
    assert write.slice.ports == ()


def test_without_a_service_each_slice_stays_with_its_own() -> None:
    """Nothing is added then, and removals go on."""
    slices = [piece("10.20.0.1", "10.20.0.2", service="before")]
    (write,) = pack(OWNER, None, {HTTP: ["10.20.0.1"]}, slices, [])
    assert write.slice.service == "before"
    assert pack(OWNER, None, {HTTP: ["10.20.0.1", "10.20.0.2"]}, slices, []) == []
