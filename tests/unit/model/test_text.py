"""Numbers in sentences."""

from __future__ import annotations

import pytest

from eurekube_sync.model.text import counted, duration, listed, one_or_more, port_fault


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 instances"),
        (1, "1 instance"),
        (2, "2 instances"),
        (1.0, "1 instance"),
        (1.5, "1.5 instances"),
    ],
)
def test_one_is_one_and_everything_else_is_many(number: float, words: str) -> None:
    """Zero is plural too."""
    assert counted(number, "instance") == words


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    """The verb agrees with the number."""
    assert (counted(1, "entry", "entries"), counted(2, "entry", "entries")) == (
        "1 entry",
        "2 entries",
    )
    assert (one_or_more(1, "is", "are"), one_or_more(3, "is", "are")) == ("is", "are")


def test_no_number_is_written_in_exponents() -> None:
    """This holds for any size."""
    assert counted(12_345_678, "instance") == "12345678 instances"


def test_words_are_listed_as_people_list_them() -> None:
    """Commas stand between words, and one word before the last."""
    assert listed(["a"], "or") == "a"
    assert listed(["a", "b"], "or") == "a or b"
    assert listed(["a", "b", "c"], "and") == "a, b and c"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (0.5, "0.5s"),
        (30, "30s"),
        (60, "1m"),
        (90, "1m30s"),
        (90.5, "90.5s"),
        (1200, "20m"),
        (5400, "1h30m"),
        (3659, "1h0m59s"),
        (1234567.5, "1234567.5s"),
    ],
)
def test_a_duration_is_written_as_an_option_takes_it(seconds: float, words: str) -> None:
    """It is written in the largest units that fit, as in Kubernetes."""
    assert duration(seconds) == words


@pytest.mark.parametrize("place", ["host:1", "host:65535", "[::1]:08080", "host", "host:http", ":"])
def test_a_port_that_may_be_is_no_fault(place: str) -> None:
    """A name, or no number at all, is for others to judge."""
    assert port_fault(place) == ""


@pytest.mark.parametrize(
    ("place", "number"),
    [(":0", "0"), ("host:65536", "65536"), ("[::1]:" + "9" * 5000, "9" * 20)],
    ids=["zero", "too large", "thousands of digits"],
)
def test_a_port_that_cannot_be_is_named(place: str, number: str) -> None:
    assert port_fault(place) == f"has the port {number}, and a port is a number from 1 to 65535"
