"""Option values with a form of their own: durations and shards."""

from __future__ import annotations

import click
import pytest

from eurekube_sync.cli.values import PART, Duration, own_number
from eurekube_sync.desired.scope import Shard


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("0.5", 0.5),
        ("30s", 30),
        ("2m", 120),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("1m30s", 90),
        ("1.5h", 5400),
    ],
)
def test_a_duration_is_written_as_kubernetes_writes_it(text: str, seconds: float) -> None:
    """It has one or more units, or is a number of seconds."""
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "h", "1h30", "1 h", "-1s", "1d", "1e3s", "nan"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    """The sentence shows the valid forms."""
    with pytest.raises(click.BadParameter, match="write 30s, 2m or 1h30m"):
        Duration().convert(text, None, None)


def test_a_duration_has_bounds() -> None:
    """The error shows them as durations."""
    with pytest.raises(click.BadParameter, match="at least 1m"):
        Duration(least=60).convert("30s", None, None)
    with pytest.raises(click.BadParameter, match="at most 576h"):
        Duration(most=576 * 3600).convert("600h", None, None)


@pytest.mark.parametrize(
    "text", ["", "1", "3/3", "-1/3", "a/3", "0/", "/3", "0/3/4", "00000/3", "1/99999", "auto", "auto/x"]
)
def test_a_text_that_is_no_shard_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence gives examples of shards."""
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    with pytest.raises(click.BadParameter, match="is not a shard; the shards of three are 0/3, 1/3 and 2/3"):
        PART.convert(text, None, None)


def test_the_shard_of_a_pod_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Indexed Job sets the variable."""
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    assert PART.convert("auto/3", None, None) == Shard(index=2, count=3)
    with pytest.raises(click.BadParameter, match="'2/2' is not a shard"):
        PART.convert("auto/2", None, None)


def test_a_pod_without_a_number_has_no_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Deployment's pod has no number. It must not get a shard by chance."""
    monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "sync-7d9f8b7c4-x2k4z")
    with pytest.raises(click.BadParameter, match="needs the number of this pod"):
        PART.convert("auto/3", None, None)


@pytest.mark.parametrize(
    ("environ", "host", "number"),
    [
        ({}, "sync-0", "0"),
        ({}, "my-sync-12", "12"),
        ({"JOB_COMPLETION_INDEX": "1"}, "sync-0-abcde", "1"),
        ({"JOB_COMPLETION_INDEX": ""}, "sync-3", "3"),
        ({}, "sync", ""),
        ({}, "12", ""),
        ({}, "sync-6d8f9-24567", ""),  # the random suffix of a Deployment's pod
    ],
)
def test_the_number_of_a_pod(environ: dict[str, str], host: str, number: str) -> None:
    """An Indexed Job sets a variable, and a StatefulSet the host name."""
    assert own_number(environ, host) == number
