"""The size limit of one answer in a container with a memory limit."""

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
def test_the_largest_answer_fits_in_the_containers_memory(
    tmp_path: Path, limit: str | None, largest: int
) -> None:
    """An answer needs five times its size in memory. Without a memory limit it may have 256 MB.
    With a very small one it may have 4 MB, which is enough for a few instances."""
    file = tmp_path / "memory.max"
    if limit is not None:
        file.write_text(limit)
    assert largest_answer([tmp_path / "missing", file]) // MB == largest
