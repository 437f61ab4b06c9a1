"""Texts that a person gives: read, or refused in one sentence, and never another error."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eurekube_sync.cli import values
from eurekube_sync.cli.approval import read_approval
from eurekube_sync.cli.options.lock import _lock
from eurekube_sync.desired.grants import _matches, _parts
from eurekube_sync.model.errors import ConfigurationError

pytestmark = pytest.mark.fuzz

TEXTS = st.text(st.sampled_from("abAB01-._,:;=!/*()[]{}&<>\\\"' \n\t\x00\x1b\ud800\u00e9"), max_size=60)
TYPES = {name: kind for name, kind in vars(values).items() if name.isupper() and isinstance(kind, click.ParamType)} | {
    "lock": values.Value("lock", _lock)
}


@pytest.mark.parametrize("name", TYPES)
@given(text=TEXTS)
def test_an_option_is_read_or_refused(name: str, text: str) -> None:
    """With the error that the command line knows."""
    with contextlib.suppress(click.BadParameter):
        TYPES[name].convert(text, None, None)


@given(content=st.binary(max_size=40) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(content=b'{"held": ' + b"[" * 5000)
@example(content=b"a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_file_of_an_approval_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    """Whatever is in it."""
    (tmp_path / "saved").write_bytes(content)
    with contextlib.suppress(ConfigurationError):
        read_approval(str(tmp_path / "saved"), now=0)


@given(annotation=TEXTS, name=TEXTS)
def test_an_annotation_grants_a_name_or_does_not(annotation: str, name: str) -> None:
    """None is a regular expression: only a star stands for more than itself."""
    for part in _parts(annotation):
        if _matches(part, name) and "*" not in part:
            assert part.casefold() == name.casefold()
