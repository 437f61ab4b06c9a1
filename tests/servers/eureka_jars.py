"""Owns lock files of jars, the Eureka servers' first of all: reads them, writes them anew, downloads
and verifies what they name.

A lock file has one jar a line: its SHA-256, the set it belongs to, its Maven coordinate. `jgo`
knows where the public repository is; a mirror is named in jgo's own settings file (section
`[repositories]` of `~/.config/jgo.conf`). Certificates are those of `requests`, so
`REQUESTS_CA_BUNDLE` is honoured.

To raise a version, change it in `eureka_lines` (or in `java/netflix.xml`) and run, with Maven on
PATH:

    python -m tests.servers.eureka_jars LINE
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import requests
from jgo.config import GlobalSettings
from jgo.maven import MavenContext

from .cache import BuildError, say
from .eureka_lines import LINES, NEWEST, EurekaLine

COMPILER = "compiler"
_ATTEMPTS = 4
_TIMEOUT_SECONDS = 60
_DOWNLOADS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One jar of the lock file."""

    jar_set: str
    """`server`, `security` (only with basic authentication) or `compiler` (only to build). The
    newest line has all three; the others have the first."""
    group: str
    artifact: str
    version: str
    sha256: str = ""

    @property
    def file_name(self) -> str:
        """Its name in a repository and on the class path."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinate(self) -> str:
        """`group:artifact:version`, as Maven writes it."""
        return f"{self.group}:{self.artifact}:{self.version}"


def locked_jars(lock: Path = NEWEST.lock) -> tuple[Jar, ...]:
    """Return all jars of a lock file. Raises ValueError when a line is malformed."""
    jars = []
    for line in lock.read_text().splitlines():
        if line and not line.startswith("#"):
            sha256, jar_set, coordinate = line.split()
            group, artifact, version = coordinate.split(":")
            jars.append(
                Jar(jar_set=jar_set, group=group, artifact=artifact, version=version, sha256=sha256)
            )
    return tuple(jars)


def download(jars: Sequence[Jar], folder: Path) -> None:
    """Put the jars into `folder/<set>/<file name>`. Raises BuildError when one is missing or has
    another SHA-256."""
    say(f"downloading {len(jars)} jars")
    with (
        tempfile.TemporaryDirectory(dir=folder) as repository,
        ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool,
    ):
        for jar, path in zip(
            jars, pool.map(lambda jar: _fetch(jar, Path(repository)), jars), strict=True
        ):
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != jar.sha256:
                raise BuildError(
                    f"{jar.coordinate} has SHA-256 {found}, the lock file says {jar.sha256}"
                )
            target = folder / jar.jar_set / jar.file_name
            target.parent.mkdir(exist_ok=True)
            path.rename(target)


def _fetch(jar: Jar, repository: Path) -> Path:
    context = MavenContext(
        repo_cache=repository,
        remote_repos=GlobalSettings.load().repositories or None,
        timeout=_TIMEOUT_SECONDS,
    )
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return artifact.resolve()
        except (requests.RequestException, RuntimeError) as error:
            if attempt == _ATTEMPTS:
                raise BuildError(
                    f"{jar.coordinate} cannot be downloaded: {type(error).__name__}"
                ) from error
            if artifact.cached_path is not None:
                artifact.cached_path.unlink(missing_ok=True)  # a download that broke off
            time.sleep(2.0**attempt)
    raise AssertionError("unreachable")


def write_lock_file(line: EurekaLine) -> None:
    """Write the lock file of a line of Eureka servers anew. Raises BuildError without Maven."""
    versions = (f"-Dcloud={line.cloud}", f"-Dboot={line.boot}")
    profiles = [f"-P{profile}" for profile in line.profiles]
    server = resolved_by_maven(line.pom, *versions, *profiles, jar_set="server")
    jars = list(server)
    if line is NEWEST:
        for jar_set in ("security", COMPILER):
            more = resolved_by_maven(line.pom, *versions, f"-P{jar_set}", jar_set=jar_set)
            jars += _without(more, server)
    write_lock(line.lock, jars)


def write_lock(lock: Path, jars: Sequence[Jar]) -> None:
    """Write a lock file with the SHA-256 of each jar, which is downloaded for it. Raises
    BuildError."""
    lines = ["# SHA-256, set, Maven coordinate. Made from pom.xml."]
    with tempfile.TemporaryDirectory() as repository:
        for jar in jars:
            sha256 = hashlib.sha256(_fetch(jar, Path(repository)).read_bytes()).hexdigest()
            lines.append(f"{sha256} {jar.jar_set} {jar.coordinate}")
    lock.write_text("\n".join(lines) + "\n")
    say(f"{lock}: {len(jars)} jars")


def _without(jars: Iterable[Jar], others: Sequence[Jar]) -> list[Jar]:
    present = {jar.coordinate for jar in others}
    return [jar for jar in jars if jar.coordinate not in present]


def resolved_by_maven(pom: Path, *options: str, jar_set: str) -> list[Jar]:
    """Return the jars of a pom with these options of Maven, such as a profile. Raises BuildError
    without Maven."""
    maven = shutil.which("mvn")
    if maven is None:
        raise BuildError("writing the lock file needs Maven (mvn) on PATH")
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as listed:
        goal = [
            "dependency:list",
            "-DincludeScope=runtime",
            f"-DoutputFile={listed.name}",
            *options,
        ]
        subprocess.run([maven, "-q", "-B", "-Dstyle.color=never", "-f", pom, *goal], check=True)
        lines = [line.split(" -- ")[0].strip() for line in listed.read().splitlines()]
    jars = []
    for coordinate in sorted(line for line in lines if line.count(":") == 4):
        group, artifact, _, version, _ = coordinate.split(":")
        jars.append(Jar(jar_set=jar_set, group=group, artifact=artifact, version=version))
    return jars


if __name__ == "__main__":
    try:
        write_lock_file(LINES[sys.argv[1]])
    except BuildError as problem:
        sys.exit(str(problem))
