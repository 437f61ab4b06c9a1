"""The API's answers with damaged bytes: the source is Unknown by the rules of a list. No other
error occurs, and no list gets shorter."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eurekube_sync.adapters.kubernetes.details import KubernetesDetails
from eurekube_sync.adapters.kubernetes.lock_store import LeaseObject
from eurekube_sync.embedded.http import Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.kubernetes import LockName, LockRecord
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from tests.unit.adapters.kubernetes.world import Half, World, answer

pytestmark = pytest.mark.fuzz

DIGITS = b"9" * 5000
NESTED = b"[" * 5000 + b"]" * 5000
STRAY = (
    b"\xff",
    b"\xc3(",
    b'\\ud800"',
    b"\\",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"null",
    b"\x00",
    b"1e999",
)
WORLD = World()


def page(kind: str, *items: dict[str, Any]) -> bytes:
    """A complete list."""
    head = {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    return json.dumps({**head, "items": items}).encode()


def item(name: str, **fields: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "rating"}
    return {"metadata": {"name": name, "namespace": "shop", "uid": "u", "labels": labels}, **fields}


TARGET = {"kind": "Pod", "name": "p", "uid": "u"}
ENDPOINT = {
    "addresses": ["10.0.0.1"],
    "conditions": {"ready": True},
    "targetRef": TARGET,
    "zone": "a",
}
SERVICES = page(
    "ServiceList", *(item(name, spec={"ports": [{"name": "http", "port": 80}]}) for name in "abc")
)
SLICES = page(
    "EndpointSliceList", *(item(name, addressType="IPv4", endpoints=[ENDPOINT]) for name in "abc")
)
TIMES = {
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "deletionTimestamp": "0001-01-01T00:00:00+14:00",
}
SYNCER = item(
    "a", spec={"mode": "pod"}, status={"up": 1, "conditions": [{"type": "Ready", "status": "True"}]}
)
SYNCER["metadata"] |= TIMES
SYNCERS = page("EurekaSyncerList", SYNCER)
IMPORT = item("a", spec={"app": "a"}, status={"leftOut": [{"reason": "NotUp", "instances": 1}]})
IMPORT["metadata"] |= TIMES
IMPORTS = page("EurekaImportList", IMPORT)


def listed(body: bytes, walk: Callable[[None], Listed[Any]]) -> Source[Any]:
    """Return the source of the namespace after this answer."""
    WORLD.fault = lambda request, number: Response(status=200, body=body)
    found = walk(None)
    if isinstance(found.elsewhere, Unknown):
        return found.elsewhere
    unknown = [source for source in found.by_namespace.values() if isinstance(source, Unknown)]
    complete = [source for source in found.by_namespace.values() if isinstance(source, Complete)]
    return (
        unknown[0]
        if unknown
        else Complete(data=tuple(each for source in complete for each in source.data))
    )


def damaged(body: bytes, longest: int = 12) -> st.SearchStrategy[bytes]:
    """Replace any part of the body by a few other bytes."""
    pieces = st.binary(max_size=6) | st.sampled_from((*STRAY, DIGITS, NESTED))

    def damage(at: int, length: int, piece: bytes) -> bytes:
        return body[:at] + piece + body[at + length :]

    return st.builds(damage, st.integers(0, len(body)), st.integers(0, longest), pieces)


@given(damaged(SERVICES))
@example(SERVICES.replace(b'"http"', NESTED, 1))
@example(SERVICES.replace(b'"http"', b'"\xff"', 1))
def test_no_damage_makes_a_list_shorter(body: bytes) -> None:
    """All three Services are listed, or a source is Unknown. The damage is too short to remove a
    whole item."""
    source = listed(body, WORLD.cluster.list_services)
    if isinstance(source, Unknown):
        assert source.cause in (Cause.UNUSABLE, Cause.UNAVAILABLE)
        assert "\n" not in source.message
    else:
        assert len(source.data) == 3


@given(damaged(SLICES, len(SLICES)))
def test_a_list_of_slices_never_raises(body: bytes) -> None:
    listed(body, WORLD.cluster.list_slices)


@given(damaged(SYNCERS, len(SYNCERS)))
@example(SYNCERS.replace(b'"conditions": [', b'"conditions": [' + NESTED + b","))
def test_a_list_of_syncers_never_raises(body: bytes) -> None:
    """The damage may be in times and in the status."""
    listed(body, WORLD.cluster.list_syncers)


@given(damaged(IMPORTS, len(IMPORTS)))
@example(IMPORTS.replace(b'"leftOut": [', b'"leftOut": [' + NESTED + b","))
def test_a_list_of_imports_never_raises(body: bytes) -> None:
    """The damage may be in times and in the status."""
    listed(body, WORLD.cluster.imports.list_imports)


@given(damaged(json.dumps(item("kube-system")).encode()), st.sampled_from([200, 404, 403, 500]))
@example(b'{"metadata":' + NESTED + b"}", 200)
@example(b'{"metadata":' + NESTED + b"}", 403)
def test_single_reads_never_raise(body: bytes, status: int) -> None:
    """The reads are of the cluster's identity, the CRD and a Namespace."""
    world = World()
    world.fault = lambda request, number: Response(status=status, body=body)
    assert isinstance(world.cluster.identity(), Complete | Unknown)
    assert isinstance(world.cluster.crd_live(), Complete | Unknown)
    assert isinstance(
        world.cluster.list_namespaces(["kube-system"]).of("kube-system"), Complete | Unknown
    )


@pytest.mark.parametrize(
    "body", [b"\xff", b'{"metadata":' + NESTED + b"}", b'{"metadata":{"name":"\xff"}}', b""]
)
def test_a_write_with_a_damaged_answer_is_a_cluster_error(body: bytes) -> None:
    """The write adds a finalizer, and its answer cannot be read."""
    world = World()
    syncer = world.make_syncer()
    world.fault = lambda request, number: Response(status=200, body=body)
    with pytest.raises(ClusterError):
        world.cluster.add_finalizer(syncer)


@pytest.mark.parametrize("retry_after", ["\xb2", "9" * 400, "-1", "soon"])
def test_a_head_that_makes_no_sense_raises_nothing(retry_after: str) -> None:
    world = World()
    world.fault = lambda request, number: answer(503, Retry_After=retry_after)
    assert isinstance(world.cluster.identity(), Unknown)


def test_a_sentence_stays_the_same_from_pass_to_pass() -> None:
    """The sentence for an unreadable list holds no revision, size or position."""
    told = set()
    for revision in ("1234", "99999"):
        for cut in (b"", b"\xff", SERVICES[:-40], SERVICES[:-50]):
            body = (cut or NESTED).replace(b'"7"', f'"{revision}"'.encode())
            source = listed(body, WORLD.cluster.list_services)
            assert isinstance(source, Unknown)
            told.add(source.message)
    assert told == {"the Kubernetes API answered GET /api/v1/services with no complete list"}


def test_a_namespace_with_a_stray_byte_is_unknown_in_words_that_stay() -> None:
    """The sentence names the item. It does not give the position of the byte.

    The words about the byte are Python's up to msgspec 0.22, and msgspec's own since 0.23.
    """
    told = set()
    for name in (b"\xff", b"long\xff"):
        source = listed(
            SERVICES.replace(b'"http"', b'"' + name + b'"', 1), WORLD.cluster.list_services
        )
        assert isinstance(source, Unknown)
        told.add(source.message)
    assert len(told) == 1
    message = told.pop()
    assert message.startswith("services shop/a cannot be read: ")
    assert "UTF-8" in message


LEASE = json.dumps(
    item(
        "lock",
        spec={
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-02T03:04:05.000006Z",
        },
    )
).encode()
NAMESPACES = page(
    "PartialObjectMetadataList",
    {"metadata": {"name": "shop", "annotations": {"eurekube.io/allowed-apps": "a"}}},
)
PODS = page(
    "PodList",
    item(
        "a", spec={"nodeName": "n"}, status={"conditions": [{"type": "Ready", "status": "False"}]}
    ),
)


@given(damaged(LEASE, len(LEASE)))
def test_a_lock_is_read_or_a_cluster_error(body: bytes) -> None:
    """Whatever the Lease holds, the process continues, and knows that it does not hold the lock."""
    WORLD.fault = lambda request, number: Response(status=200, body=body)
    lock = LeaseObject(
        WORLD.connection, LockName(namespace="a", name="b"), clock=WORLD.clock, random=Half()
    )
    with contextlib.suppress(ClusterError):
        assert isinstance(lock.read(), LockRecord)


@given(damaged(NAMESPACES))
def test_a_list_of_namespaces_never_raises(body: bytes) -> None:
    """The damage may be in the annotations, which hold the grants."""
    WORLD.fault = lambda request, number: Response(status=200, body=body)
    assert isinstance(WORLD.cluster.list_namespaces(None).of("shop"), Complete | Unknown)


@given(damaged(PODS, len(PODS)))
@example(page("PodList", item("a", spec={"containers": [None]})))
def test_the_details_of_pods_never_raise(body: bytes) -> None:
    WORLD.fault = lambda request, number: Response(status=200, body=body)
    details = KubernetesDetails(
        WORLD.connection, clock=WORLD.clock, random=Half(), limit=TimeLimit(WORLD.clock)
    )
    assert isinstance(details.list_pod_details("shop"), Complete | Unknown)
