"""Ownership: whose an instance is, and its id."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import PodRef, SyncerRef
from eurekube_sync.model.ownership import (
    CLUSTER,
    KEYS,
    OWNER,
    OWNER_PATTERN,
    POD,
    SYNCER,
    Ownership,
    instance_id,
    our_keys,
    pod_uid_of,
    syncer_of,
)
from tests.unit.worlds.build import seen

US = Ownership(owner="prod", cluster="c1")


def marked(**metadata: str) -> ObservedInstance:
    """An instance with these marks, given without their prefix."""
    marks = {f"eurekube.{name}": value for name, value in metadata.items()}
    return seen(InstanceKey("A", "a"), metadata=marks)


@pytest.mark.parametrize(
    ("marks", "ours", "clash"),
    [
        ({"owner": "prod", "cluster": "c1"}, True, False),
        ({"owner": "prod", "cluster": "c2"}, False, True),
        ({"owner": "prod"}, False, False),
        ({"owner": "test", "cluster": "c1"}, False, False),
        ({"cluster": "c1"}, False, False),
        ({}, False, False),
    ],
)
def test_an_instance_is_ours_when_owner_and_cluster_match(
    marks: dict[str, str], ours: bool, clash: bool
) -> None:
    """The same owner in another cluster is a clash. Any other instance belongs to others. One that
    a person registered by hand, without the mark of a cluster, must not stop the installation."""
    assert (US.holds(marked(**marks)), US.clashes(marked(**marks))) == (ours, clash)


def test_our_marks_are_added_to_the_users_metadata() -> None:
    """They are owner, cluster, syncer, pod, and the names of the user's keys."""
    found = US.marked({"b": "2", "a": "1"}, SyncerRef("ns", "rating"), PodRef("rating-1", "uid-1"))
    assert found == {
        "a": "1",
        "b": "2",
        OWNER: "prod",
        CLUSTER: "c1",
        SYNCER: "ns/rating",
        POD: "rating-1/uid-1",
        KEYS: "a,b",
    }


def test_without_pod_or_metadata_those_marks_are_left_out() -> None:
    """The instance of a Service has no pod."""
    assert set(US.marked({}, SyncerRef("ns", "rating"), None)) == {OWNER, CLUSTER, SYNCER}


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("ns/name", SyncerRef("ns", "name")),
        ("ns", None),
        ("/name", None),
        ("ns/", None),
        ("", None),
    ],
)
def test_a_syncer_is_read_back_from_a_whole_mark_only(
    mark: str, expected: SyncerRef | None
) -> None:
    """Half a mark names no syncer."""
    assert syncer_of(marked(syncer=mark)) == expected


@pytest.mark.parametrize(
    ("mark", "expected"), [("pod/uid", "uid"), ("pod", None), ("pod/", None), ("", None)]
)
def test_a_pods_uid_is_read_back_from_a_whole_mark_only(mark: str, expected: str | None) -> None:
    """Without a UID nothing can be proven about the pod."""
    assert pod_uid_of(marked(pod=mark)) == expected


@pytest.mark.parametrize(
    ("keys", "expected"), [("a,b", {"a", "b"}), ("", set()), ("a,,b", {"a", "b"})]
)
def test_the_users_keys_that_we_wrote_are_read_back(keys: str, expected: set[str]) -> None:
    """A key that is removed from the spec is then removed from Eureka."""
    assert our_keys({KEYS: keys}) == expected
    assert our_keys({}) == frozenset()


@pytest.mark.parametrize(
    ("owner", "legal"),
    [
        ("a", True),
        ("prod-1", True),
        ("a" * 32, True),
        ("a" * 33, False),
        ("Prod", False),
        ("-a", False),
        ("", False),
    ],
)
def test_an_owner_is_a_short_dns_label(owner: str, legal: bool) -> None:
    """It has at most 32 characters, so that ids stay short."""
    assert (OWNER_PATTERN.fullmatch(owner) is not None) is legal


def test_an_id_never_changes_its_format() -> None:
    """Another format would register every instance twice."""
    make = {"owner": "prod", "namespace": "ns", "app": "Rating", "port": 8080}
    assert instance_id(**make, address="10.0.0.1") == "prod:ns:rating:10.0.0.1:8080"  # type: ignore[arg-type]
    assert instance_id(**make, address="fd00::1") == "prod:ns:rating:fd00--1:8080"  # type: ignore[arg-type]


LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
PARTS = st.fixed_dictionaries(
    {
        "owner": LABEL,
        "namespace": LABEL,
        "app": st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,8}[a-z0-9])?", fullmatch=True),
        "address": st.ip_addresses().map(str),
        "port": st.integers(1, 65535),
    }
)


@given(PARTS)
def test_every_id_is_legal(parts: dict[str, object]) -> None:
    """It is one path segment of letters, digits, dots, underscores, colons and hyphens."""
    assert re.fullmatch(r"[A-Za-z0-9._:-]+", instance_id(**parts))  # type: ignore[arg-type]


@given(PARTS, PARTS, st.sets(st.sampled_from(["owner", "namespace", "app", "address", "port"])))
def test_ids_are_equal_only_when_all_parts_are(
    one: dict[str, object], other: dict[str, object], same: set[str]
) -> None:
    """No two instances share an id, in one cluster or in two with one registry."""
    other |= {name: one[name] for name in same}
    assert (instance_id(**one) == instance_id(**other)) is (one == other)  # type: ignore[arg-type]
