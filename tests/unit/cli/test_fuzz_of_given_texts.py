"""Random texts from a person: each is read, or is refused in one sentence. No other error
occurs."""

from __future__ import annotations

import contextlib
import gzip
import io
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eurekube_sync.cli import values
from eurekube_sync.cli.options.scope import _lock
from eurekube_sync.cli.records import encoded, record_at, recorded_pass
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.desired.scope import _matches, _parts
from eurekube_sync.manifests.dumps import read_dumps
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.struct import replace
from tests.in_process.workers import InTurn
from tests.simulation.town import Town

pytestmark = pytest.mark.fuzz

TEXTS = st.text(
    st.sampled_from("abAB01-._,:;=!/*()[]{}&<>\\\"' \n\t\x00\x1b\ud800\u00e9"), max_size=60
)
TYPES = {
    name: kind
    for name, kind in vars(values).items()
    if name.isupper() and isinstance(kind, click.ParamType)
} | {"lock": values.Value("lock", _lock)}


@pytest.mark.parametrize("name", TYPES)
@given(text=TEXTS)
def test_an_option_is_read_or_refused(name: str, text: str) -> None:
    """The error is one that the command line handles."""
    with contextlib.suppress(click.BadParameter):
        TYPES[name].convert(text, None, None)


def a_record() -> bytes:
    """The record of a pass of a small town."""
    town = Town(2, 1)
    return encoded(town.recording.of(town.good(), ExitCode.OK))


RECORD = a_record()
DUMP = b'{"kind":"List","apiVersion":"v1","items":[{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"}}]}'


def damaged(text: bytes) -> st.SearchStrategy[bytes]:
    """Replace any part of the text by a few other bytes."""

    def damage(at: int, length: int, piece: bytes) -> bytes:
        return text[:at] + piece + text[at + length :]

    return st.builds(damage, st.integers(0, len(text)), st.integers(0, 12), st.binary(max_size=6))


@given(content=damaged(gzip.compress(RECORD, mtime=0)) | damaged(RECORD).map(gzip.compress))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_record_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    """The damage is before or after the compression. A pass can be made from what is read."""
    path = tmp_path / "pass-20260101T000000.000Z-00000000.json.gz"
    path.write_bytes(content)
    with contextlib.suppress(ConfigurationError):
        recorded = recorded_pass(record_at(tmp_path, None))
        reconcile(recorded.world(InTurn()), replace(recorded.record.settings, dry_run=True))


@given(content=damaged(DUMP))
@example(content=b"a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]")
def test_a_file_of_kubectl_is_read_or_refused(content: bytes) -> None:
    """Such files are given to --from."""
    with contextlib.suppress(ConfigurationError):
        read_dumps(["-"], stdin=io.BytesIO(content))


@given(annotation=TEXTS, name=TEXTS)
def test_an_annotation_grants_a_name_or_does_not(annotation: str, name: str) -> None:
    """An annotation is no regular expression. Only a star matches other text."""
    for part in _parts(annotation):
        if _matches(part, name) and "*" not in part:
            assert part.casefold() == name.casefold()
