"""Value types: a dataclass for readers, and a struct when it is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property

import pytest

from eurekube_sync.model.values import dataclass, derive


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    name: str
    marks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    number: int = 3


def test_a_value_compares_and_shows_its_fields() -> None:
    """It does so like a frozen dataclass."""
    assert _Value(name="a") == _Value(name="a", number=3)
    assert _Value(name="a") != _Value(name="b")
    assert repr(_Value(name="a")) == "_Value(name='a', marks={}, number=3)"


def test_nobody_changes_a_value() -> None:
    """This holds where no type checker looks."""
    with pytest.raises(AttributeError):
        _Value(name="a").name = "b"  # type: ignore[misc]


def test_no_two_values_share_a_default() -> None:
    """A factory is called for each value."""
    assert _Value(name="a").marks is not _Value(name="a").marks


def test_values_work_like_dataclasses() -> None:
    """A copy can have changes, and the fields have names."""
    assert dataclasses.replace(_Value(name="a"), number=4) == _Value(name="a", number=4)
    assert [field.name for field in dataclasses.fields(_Value)] == ["name", "marks", "number"]


def test_a_value_without_slots_keeps_what_it_was_asked() -> None:
    """A plan keeps its groups of actions like this."""

    @dataclass(frozen=True, kw_only=True)
    class Keeping:
        number: int

        @cached_property
        def asked(self) -> list[int]:
            return [self.number]

    one = Keeping(number=1)
    assert one.asked is one.asked


def test_a_field_that_is_hidden_stays_hidden() -> None:
    """A struct would show a password that `repr=False` hides."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Login:
        password: str = dataclasses.field(repr=False)

    assert "secret" not in repr(Login(password="secret"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Login(password="secret").password = ""  # type: ignore[misc]


def test_a_field_that_is_made_of_others_follows_them() -> None:
    """No argument sets it, and a copy with a change computes it again."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        first: str
        whole: str = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            derive(self, "whole", f"{self.first} Smith")

    assert dataclasses.replace(Named(first="Ann"), first="Bob").whole == "Bob Smith"
    with pytest.raises(
        (TypeError, ValueError), match="init=False"
    ):  # a TypeError from Python 3.13 on
        dataclasses.replace(Named(first="Ann"), whole="Bob")


def test_a_subclass_of_a_value_is_not_equal_to_it() -> None:
    """Even with the same fields, it is another value."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Kind(_Value):
        """A subclass with the same fields."""

    assert isinstance(Kind(name="a"), _Value)
    assert dataclasses.replace(Kind(name="a"), name="b") == Kind(name="b")
    assert Kind(name="a") != _Value(name="a")
