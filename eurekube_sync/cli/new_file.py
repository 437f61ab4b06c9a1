"""Writes a file as a whole, or not at all. A link that somebody planted in its place is replaced, and not followed; a
pipe or a device stays."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_new(path: Path, part: Path, content: bytes, *, mode: int) -> None:
    """By way of `part`, a name in the same folder that nobody can guess. Raises OSError, and leaves no part then."""
    if os.path.lexists(path) and not (path.is_symlink() or path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe or a device")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
