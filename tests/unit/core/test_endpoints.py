"""Which endpoints count, on which port, and how duplicates merge."""

from __future__ import annotations

import itertools

import pytest

from eurekube_sync.endpoints import backends, choose_port, chosen_ports, one_per_pod
from eurekube_sync.errors import InvalidSyncer
from eurekube_sync.model import Endpoint, EndpointPort, EndpointSlice, Service, ServicePort

from .build import endpoint, piece, service

HTTP = ServicePort(name="http", port=80, target=8080)


def test_duplicates_that_differ_only_in_serving_merge_alike_in_any_order() -> None:
    """Of two copies of a terminating endpoint the one that still serves counts, whichever comes first."""
    copies = [endpoint(ready=False, serving=serving, terminating=True) for serving in (True, False)]
    for order in itertools.permutations(copies):
        (merged,) = backends(service(), HTTP, [piece(*order)], family="IPv4")
        assert merged.serving
