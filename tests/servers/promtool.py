"""Owns `promtool`, which checks and tests alert rules: that of the machine, or Debian's.

A build of Prometheus from its Go modules takes ten minutes; Debian's package is there in a second,
and is unpacked and not installed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .cache import BuildError, cached, run_logged


def promtool() -> Path:
    """The command. Raises BuildError where there is neither it nor apt-get."""
    found = shutil.which("promtool")
    if found:
        return Path(found)
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise BuildError(
            "promtool is missing: put it on the PATH, from https://prometheus.io/download/"
        )

    def build(folder: Path) -> None:
        run_logged("promtool", ["apt-get", "download", "prometheus"], directory=folder)
        (package,) = folder.glob("*.deb")
        run_logged("promtool", ["dpkg-deb", "--extract", package, folder / "unpacked"])
        (folder / "unpacked" / "usr" / "bin" / "promtool").rename(folder / "promtool")
        shutil.rmtree(folder / "unpacked")
        package.unlink()

    return cached("promtool-debian", [], build) / "promtool"
