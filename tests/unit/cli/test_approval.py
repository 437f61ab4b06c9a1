"""The value of `--approve`, and the numbers that the brake's options accept."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import click
import pytest
import yaml

from eurekube_sync.brake.approval import PlanId, SavedDryRun
from eurekube_sync.cli.options.passes import read_approval
from eurekube_sync.cli.values import PERCENT
from eurekube_sync.model.errors import ConfigurationError

DRY_RUN = {
    "dryRun": True,
    "owner": "prod",
    "cluster": "c",
    "at": "2027-01-15T08:00:00Z",
    "actions": [
        {
            "action": "cancel",
            "app": "RATING",
            "id": "prod:rating:rating:10.0.0.1:8080",
            "removal": True,
        }
    ],
    "held": [],
}


def test_twelve_hex_digits_are_a_plan_id() -> None:
    """This holds even if a file has that name. The plan id is as old as the process."""
    assert read_approval("0123456789ab", now=5) == PlanId("0123456789ab", given=5)


@pytest.mark.parametrize(
    "dumped", [json.dumps(DRY_RUN, indent=2), yaml.safe_dump(DRY_RUN, explicit_start=True)]
)
def test_a_file_is_a_saved_dry_run_in_json_or_yaml(dumped: str, tmp_path: Path) -> None:
    """`-o json` and `-o yaml` write such files. A YAML time without quotes is the same time."""
    file = tmp_path / "plan"
    for text in (dumped, dumped.replace("'2027-01-15T08:00:00Z'", "2027-01-15T08:00:00Z")):
        file.write_text(text)
        approval = read_approval(str(file), now=5)
        assert isinstance(approval, SavedDryRun)
        assert (approval.at, len(approval.removals)) == (1_800_000_000, 1)


def test_a_file_without_end_is_too_large(tmp_path: Path) -> None:
    """No more bytes are read than the largest dry run may have."""
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(ConfigurationError, match="is too large for a dry run"):
        read_approval(str(tmp_path / "sparse"), now=0)


def test_a_dry_run_may_come_from_the_shell() -> None:
    """An example is `--approve <(eurekube-sync run --dry-run -o json)`, which takes some time."""
    read, write = os.pipe()

    def answer() -> None:
        os.write(write, json.dumps(DRY_RUN).encode())
        os.close(write)

    later = threading.Timer(0.1, answer)
    later.start()
    try:
        assert isinstance(read_approval(f"/dev/fd/{read}", now=5), SavedDryRun)
    finally:
        later.join()
        os.close(read)


ODD_TAGS = (b"at: !!timestamp now", b"at: !!int ''", b"at: !!float ''", b"dryRun: !!bool maybe")
"""Values that do not fit their tag. PyYAML fails at each in another way."""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "is neither a plan id, which is 12 hex digits, nor a file"),
        (b"", "is not a dry run: save one with run --dry-run -o json"),
        (b'{"dryRun": true', "is cut, or neither JSON nor YAML: save it again"),
        (b"dryRun: true\nactions: [", "is cut, or neither JSON nor YAML: save it again"),
        (json.dumps(DRY_RUN).encode() * 2, "is cut, or neither JSON nor YAML: save it again"),
        (b"[" * 5000, "is cut, or neither JSON nor YAML: save it again"),
        *((tagged, "is cut, or neither JSON nor YAML: save it again") for tagged in ODD_TAGS),
        (b"\xff\xfe", "is not text: save a dry run with run --dry-run -o json"),
        (
            json.dumps({**DRY_RUN, "actions": []}).encode(),
            "shows no removal, so there is nothing to release",
        ),
    ],
)
def test_any_other_file_is_refused_in_one_sentence(
    content: bytes | None, expected: str, tmp_path: Path
) -> None:
    """The sentence names the option and the file."""
    file = tmp_path / "plan.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read_approval(str(file), now=5)
    assert str(caught.value) == f"--approve {file} {expected}"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12.5", 12.5), (".5", 0.5), ("1e1", 10), ("0030", 30), (" 100", 100), (30.0, 30)],
)
def test_a_percentage_is_a_number_in_0_to_100(text: str | float, number: float) -> None:
    """Scripts may write it in different forms."""
    assert PERCENT.convert(text, None, None) == number


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "100.1", "30%", "x", ""])
def test_a_percentage_that_would_switch_the_brake_off_is_refused(text: str) -> None:
    """No number is greater than `nan`, so no loss would exceed it."""
    with pytest.raises(click.BadParameter):
        PERCENT.convert(text, None, None)
