"""The subject of a question to `explain`: what is accepted, and what is refused."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest

from eurekube_sync.desired.similar import near_labels
from eurekube_sync.explain.what import Kind, What, parse_what


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("shop/orders", What(Kind.SYNCER, "orders", "shop")),
        ("esync/shop/orders", What(Kind.SYNCER, "orders", "shop")),
        ("svc/shop/orders", What(Kind.SERVICE, "orders", "shop")),
        ("service/shop/orders", What(Kind.SERVICE, "orders", "shop")),
        ("pod/shop/orders-a", What(Kind.POD, "orders-a", "shop")),
        ("orders", What(Kind.APP, "ORDERS")),
        ("10.0.0.1:8080", What(Kind.ADDRESS, "10.0.0.1", port=8080)),
        ("10.0.0.1", What(Kind.ADDRESS, "10.0.0.1")),
        ("[fd00::7]:8080", What(Kind.ADDRESS, "fd00::7", port=8080)),
        ("fd00::7", What(Kind.ADDRESS, "fd00::7")),
        (
            "demo:shop:orders:10.0.0.1:8080",
            What(Kind.INSTANCE, "demo:shop:orders:10.0.0.1:8080", "shop"),
        ),
        ("orders-a:orders:8080", What(Kind.INSTANCE, "orders-a:orders:8080")),
    ],
)
def test_it_is_read(text: str, meant: What) -> None:
    """Each form, with its namespace."""
    assert parse_what(text) == meant


@pytest.mark.parametrize("text", ["", "a/b/c/d", "svc//orders", "node/shop/orders", "/orders"])
def test_a_text_that_names_nothing_is_refused(text: str) -> None:
    """The message shows the valid forms."""
    with pytest.raises(ValueError, match="write NAMESPACE/NAME of a syncer"):
        parse_what(text)


def test_a_missing_namespace_is_named() -> None:
    """`svc/orders` is not the syncer orders of the namespace svc."""
    with pytest.raises(ValueError, match="write svc/NAMESPACE/orders"):
        parse_what("svc/orders")


@pytest.mark.parametrize(
    "text", ["svc/shop/orders", "pod/shop/a", "shop/orders", "ORDERS", "[fd00::7]:1", "fd00::7"]
)
def test_it_is_written_as_it_was_read(text: str) -> None:
    """The answer repeats the question."""
    assert str(parse_what(text)) == text


def test_a_value_is_compared_letter_by_letter_only_with_that_of_its_own_label(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A comparison with all labels of some thousand pods would take seconds, and `status` makes one
    for each Service."""
    compared: list[str] = []

    class Counting(SequenceMatcher[str]):
        def __init__(self, isjunk: None, a: str, b: str) -> None:
            compared.append(b)
            super().__init__(isjunk, a, b)

    monkeypatch.setattr("eurekube_sync.desired.similar.SequenceMatcher", Counting)
    labels = {
        "app": "orderss",
        "name": "orders",
        **{f"label-{number}": "ordersx" for number in range(20)},
    }
    found = near_labels({"app": "orders"}, [("a", labels)])
    assert (found, compared) == (
        [("name=orders", ("a",), True), ("app=orderss", ("a",), False)],
        ["orderss"],
    )
