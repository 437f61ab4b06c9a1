"""What somebody may ask about, and what nobody can explain."""

from __future__ import annotations

import pytest

from eurekube_sync.explain.what import (
    OfAddress,
    OfApp,
    OfInstance,
    OfPod,
    OfService,
    OfSyncer,
    What,
    namespace_of,
    parse_what,
)
from eurekube_sync.model.kubernetes import SyncerRef


@pytest.mark.parametrize(
    ("text", "meant", "namespace"),
    [
        ("shop/orders", OfSyncer(SyncerRef("shop", "orders")), "shop"),
        ("esync/shop/orders", OfSyncer(SyncerRef("shop", "orders")), "shop"),
        ("svc/shop/orders", OfService("shop", "orders"), "shop"),
        ("service/shop/orders", OfService("shop", "orders"), "shop"),
        ("pod/shop/orders-a", OfPod("shop", "orders-a"), "shop"),
        ("orders", OfApp("ORDERS"), ""),
        ("10.0.0.1:8080", OfAddress("10.0.0.1", 8080), ""),
        ("10.0.0.1", OfAddress("10.0.0.1", None), ""),
        ("[fd00::7]:8080", OfAddress("fd00::7", 8080), ""),
        ("fd00::7", OfAddress("fd00::7", None), ""),
        ("demo:shop:orders:10.0.0.1:8080", OfInstance("demo:shop:orders:10.0.0.1:8080", "shop"), "shop"),
        ("orders-a:orders:8080", OfInstance("orders-a:orders:8080", ""), ""),
    ],
)
def test_it_is_read(text: str, meant: What, namespace: str) -> None:
    """Each in its form, and the namespace that it names."""
    assert parse_what(text) == meant
    assert namespace_of(meant) == namespace


@pytest.mark.parametrize("text", ["", "a/b/c/d", "svc//orders", "node/shop/orders", "/orders"])
def test_what_names_nothing_is_refused(text: str) -> None:
    """With the forms that there are."""
    with pytest.raises(ValueError, match="write NAMESPACE/NAME of a syncer"):
        parse_what(text)


def test_a_missing_namespace_is_named() -> None:
    """`svc/orders` is not the syncer orders of the namespace svc."""
    with pytest.raises(ValueError, match="write svc/NAMESPACE/orders"):
        parse_what("svc/orders")


@pytest.mark.parametrize("text", ["svc/shop/orders", "pod/shop/a", "shop/orders", "ORDERS", "[fd00::7]:1", "fd00::7"])
def test_it_is_written_as_it_was_read(text: str) -> None:
    """The answer repeats the question."""
    assert str(parse_what(text)) == text
