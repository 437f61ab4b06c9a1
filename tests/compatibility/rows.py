"""Owns the rows of the matrix: which servers, and which tests run on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.servers.eureka_lines import LINE_VARIABLE, LINES, NEWEST
from tests.servers.go_builds import (
    KUBERNETES_RELEASES,
    NEWEST_KUBERNETES,
    OLDEST_KUBERNETES,
    RELEASE_VARIABLE,
)

STORY = "tests/integration/test_story.py"
PEERS = "tests/integration/test_peers.py"
EUREKA_CONTRACT = (
    "tests/contract/test_eureka.py",
    "tests/contract/test_eureka_batches.py",
    "tests/contract/test_eureka_client.py",
    "tests/contract/test_registry_xml.py",
)
KUBERNETES_CONTRACT = (
    "tests/contract/test_kubernetes.py",
    "tests/contract/test_cluster_client.py",
    "tests/contract/test_crd.py",
    "tests/contract/test_lock_object.py",
)
_QUICK = ("Eureka Edgware", "Eureka Netflix-1.10", f"Kubernetes {OLDEST_KUBERNETES}")
"""The rows of `tox -m wide`: the oldest ones, and the one that is not Spring's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A server, and the tests that run on it."""

    name: str
    variables: Mapping[str, str]
    """What the tests choose the server by."""
    parts: Mapping[str, tuple[str, ...]]
    """The files of each part."""
    pair: Mapping[str, str] | None = None
    """The same for a pair of it and the newest, on which `PEERS` run; None for no pair."""

    @property
    def quick(self) -> bool:
        """Whether it is one of `tox -m wide`."""
        return self.name in _QUICK


def _eureka_row(name: str) -> Row:
    pair = None if name == NEWEST.name else {LINE_VARIABLE: f"{name},{NEWEST.name}"}
    return Row(
        name=f"Eureka {name}",
        variables={LINE_VARIABLE: name},
        parts={"contract": EUREKA_CONTRACT, "story": (STORY,)},
        pair=pair,
    )


def _kubernetes_row(release: str) -> Row:
    return Row(
        name=f"Kubernetes {release}",
        variables={RELEASE_VARIABLE: release},
        parts={"contract": KUBERNETES_CONTRACT, "story": (STORY,)},
    )


_EUREKA = [_eureka_row(name) for name in LINES]
_KUBERNETES = [_kubernetes_row(release) for release in KUBERNETES_RELEASES]
ROWS = {row.name: row for row in (*_EUREKA, *_KUBERNETES)}
NEWEST_ROWS = (f"Eureka {NEWEST.name}", f"Kubernetes {NEWEST_KUBERNETES}")
