"""How large an answer may be in a container with a limit of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from eurekube_sync.adapters.tries import largest_answer

MB = 2**20


@pytest.mark.parametrize(
    ("limit", "largest"),
    [
        (f"{256 * MB}\n", 38),
        (f"{1024 * MB}\n", 192),
        ("9223372036854771712\n", 256),
        (f"{16 * MB}\n", 4),
        ("max\n", 256),
        ("", 256),
        (None, 256),
    ],
)
def test_the_largest_answer_fits_in_the_containers_memory(tmp_path: Path, limit: str | None, largest: int) -> None:
    """It takes five times its size; 256 MB where there is no limit, and what a few instances need where there is
    hardly any."""
    file = tmp_path / "memory.max"
    if limit is not None:
        file.write_text(limit)
    assert largest_answer([tmp_path / "missing", file]) // MB == largest
