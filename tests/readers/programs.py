"""Owns what the readers of Eureka are run from: each comes from a package registry, and is built
once into the cache of `tests.servers`, all of them by `python -m tests.readers.programs`.

Versions are fixed beside the sources. To raise one of Java, change `java/pom.xml` and run, with
Maven on PATH:

    python -m tests.readers.programs --lock

For Go, change `go/fargo/go.mod` and run `go mod tidy` there. For JavaScript, change
`node/package.json` and run `npm install --package-lock-only --omit-lockfile-registry-resolved`
there.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.servers.cache import BuildError, cached, run_logged, say
from tests.servers.eureka_jars import locked_jars, resolved_by_maven, write_lock
from tests.servers.go_builds import module_of_ours
from tests.servers.java_classes import class_path
from tests.servers.toolchains import installed_by_pip, java, node, npm, prometheus

_SOURCES = Path(__file__).parent
_POM = _SOURCES / "java" / "pom.xml"
_JARS = _SOURCES / "java" / "jars.lock"
_PYTHON_PACKAGES = (
    "py-eureka-client==0.13.3",
    "anyio==4.16.0",
    "certifi==2026.10.19.post1",
    "dnspython==2.8.0",
    "h11==0.16.0",
    "httpcore==1.0.9",
    "httpx==0.28.1",
    "idna==3.20",
    "ifaddr==0.2.0",
    "typing-extensions==4.16.0",
)
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx192m")
_OPENED = ("io", "lang", "lang.reflect", "math", "net", "text", "util", "util.concurrent")
"""Packages of `java` that the libraries of Hoxton look into, which are older than modules."""


def py_eureka_client() -> list[str]:
    """Return the command of our caller of py-eureka-client. Raises BuildError."""
    source = _SOURCES / "python" / "reader.py"
    packages = installed_by_pip("py-eureka-client", *_PYTHON_PACKAGES)
    return [sys.executable, str(source), str(packages)]


def eureka_js_client() -> list[str]:
    """Return the command of our caller of eureka-js-client. Raises BuildError."""
    source = _SOURCES / "node" / "reader.js"
    package = [source.with_name(name) for name in ("package.json", "package-lock.json")]

    def build(folder: Path) -> None:
        for file in (source, *package):
            shutil.copy(file, folder)
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund")
        run_logged("eureka-js-client", [*npm(), "ci", *quiet], directory=folder)

    folder = cached("eureka-js-client", [source, *package], build)
    return [str(node()), str(folder / source.name)]


def fargo() -> list[str]:
    """Return the command of our caller of fargo. Raises BuildError."""
    return [str(module_of_ours("fargo", _SOURCES / "go" / "fargo"))]


def spring_today() -> list[str]:
    """Return the command of the Spring application of today. Raises BuildError."""
    return _spring("today", "SpringToday", release=17)


def spring_hoxton() -> list[str]:
    """Return the command of the Spring application of the Hoxton line. Raises BuildError."""
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
    return _spring("hoxton", "SpringHoxton", *opened, release=8)


def _spring(line: str, main: str, *options: str, release: int) -> list[str]:
    source = _SOURCES / "java" / line / f"{main}.java"
    jars = class_path(_JARS, line, source, release=release)
    return [str(java()), *_JVM, *options, "-cp", jars, f"readers.{main}"]


def version(package: str) -> str:
    """Return the version of a package that a reader comes from: of pip, npm, Go or Debian, or
    `SET/ARTIFACT` of `java/jars.lock`. Raises KeyError for another one."""
    versions = {"prometheus": _prometheus_version()}
    for pinned in _PYTHON_PACKAGES:
        name, _, number = pinned.partition("==")
        versions[name] = number
    versions |= json.loads((_SOURCES / "node" / "package.json").read_text())["dependencies"]
    go_modules = (_SOURCES / "go" / "fargo" / "go.mod").read_text()
    for name, number in re.findall(r"^require (\S+) v(\S+)$", go_modules, re.MULTILINE):
        versions[name] = number
    for jar in locked_jars(_JARS):
        versions[f"{jar.jar_set}/{jar.artifact}"] = jar.version.removesuffix(".RELEASE")
    return versions[package]


def _prometheus_version() -> str:
    done = subprocess.run(
        [prometheus(), "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    said = re.search(r"version (\d+\.\d+\.\d+)", done.stdout + done.stderr)
    return said[1] if said else "unknown"


def main() -> int:
    """Build what the cache lacks, or write the lock file; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.readers.programs")
    parser.add_argument("--lock", action="store_true", help="write jars.lock, and build nothing")
    try:
        if parser.parse_args().lock:
            today = resolved_by_maven(_POM, "-Ptoday", jar_set="today")
            hoxton = resolved_by_maven(_POM, "-Phoxton", jar_set="hoxton")
            write_lock(_JARS, [*today, *hoxton])
        else:
            for build in (spring_today, spring_hoxton, py_eureka_client, eureka_js_client, fargo):
                build()
            prometheus()
    except BuildError as problem:
        say(str(problem))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
