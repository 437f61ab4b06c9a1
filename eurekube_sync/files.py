"""Opens files safely: a symbolic link may lead anywhere, and reading a pipe or a device may never
end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

_OPENED_BY_SHELL = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")  # such as the file of `<(command)`


def open_regular(path: str | os.PathLike[str], *, follow: bool = False) -> IO[bytes]:
    """Open a file for reading. Raises OSError if that fails, for a folder, a pipe or a device, and,
    unless `follow`, for a symbolic link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is a folder, a pipe or a device")


def open_named(path: str, *, follow: bool = True) -> IO[bytes]:
    """Open a file that a person names: as `open_regular`, or a pipe that the shell opened."""
    if path.startswith(_OPENED_BY_SHELL):
        return open(path, "rb")
    return open_regular(path, follow=follow)


def write_new(path: Path, part: Path, content: bytes, *, mode: int) -> None:
    """Write a file atomically, by way of `part`, a name in the same folder that nobody can guess.
    Raises OSError."""
    if os.path.lexists(path) and not (path.is_symlink() or path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe or a device")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # a strict umask takes rights away
            file.write(content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
