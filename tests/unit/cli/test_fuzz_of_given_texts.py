"""Random texts from a person: each is read, or is refused in one sentence. No other error
occurs."""

from __future__ import annotations

import contextlib
import gzip
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eurekube_sync.cli import values
from eurekube_sync.cli.commands.replay import Recorder, record_files
from eurekube_sync.cli.options.passes import read_approval
from eurekube_sync.cli.options.scope import _lock
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import _matches, _parts
from eurekube_sync.manifests.dumps import read_dumps
from eurekube_sync.model.errors import ConfigurationError
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import endpoint, piece
from tests.unit.worlds.fakes import FakeWorld

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


@given(
    content=st.binary(max_size=40) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))
)
@example(content=b'{"held": ' + b"[" * 5000)
@example(content=b"a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_file_of_an_approval_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "saved").write_bytes(content)
    with contextlib.suppress(ConfigurationError):
        read_approval(str(tmp_path / "saved"), now=0)


def a_record() -> bytes:
    """The record of a pass that registers two pods."""
    world = FakeWorld()
    add_app(world, "app", 0)
    world.cluster.apply(piece(endpoint(1), endpoint(2), service="app"))
    with TemporaryDirectory() as folder:
        Recorder(Path(folder), most_bytes=10**6).keep(world.run(), ExitCode.OK)
        (file,) = Path(folder).iterdir()
        return gzip.decompress(file.read_bytes())


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
    """The damage is before or after the compression."""
    path = tmp_path / "pass-20260101T000000.000Z-00000000.json.gz"
    path.write_bytes(content)
    for whole in (True, False):
        with contextlib.suppress(ConfigurationError):
            record_files(tmp_path)[0].read(whole=whole)


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
