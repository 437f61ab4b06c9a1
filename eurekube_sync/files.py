"""Opens files for reading: a link may lead anywhere, a pipe may never end, a device has no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

_HANDED_OVER = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""How a shell names what it has opened itself, as for `<(command)`."""


def open_regular(path: str | os.PathLike[str], *, follow: bool = False) -> IO[bytes]:
    """The file, opened for reading. Raises OSError for one that cannot be opened, for a folder, a pipe or a device, and
    for a link unless `follow`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is a folder, a pipe or a device")


def open_named(path: str, *, follow: bool = True) -> IO[bytes]:
    """The same of a file that a person names to be read once: also one that the shell hands over, which is a link."""
    return open(path, "rb") if path.startswith(_HANDED_OVER) else open_regular(path, follow=follow)


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
