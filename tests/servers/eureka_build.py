"""Owns what a Spring Eureka server is run from: the verified jars and our three classes, two of them
with security.

The classes are compiled with the Eclipse compiler, one of the jars, so that a Java without `javac`
is enough. An archive of all classes that a start loads (AppCDS, JEP 350) halves what a start takes:
tests start dozens of servers.
"""

import subprocess
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import requests

from .cache import BuildError, cached, run_logged, say
from .eureka_jars import LOCK_FILE, download, locked_jars
from .process import LOOPBACK, free_port
from .toolchains import java, java_version

EUREKA_VERSION = "boot-4.0.7-cloud-2025.1.2"
_SOURCES = tuple(sorted((LOCK_FILE.parent / "src").rglob("*.java")))
_JAVA_RELEASE = "17"
_FIRST_START_SECONDS = 300.0
_END_SECONDS = 120.0
_CLASSES = "classes.jar"
_ARCHIVE = "classes.jsa"


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaProgram:
    """A Eureka server ready to be started."""

    java: Path
    folder: Path
    archive: Path | None = None
    """Without it a start takes longer; a Java that it was not made by, or other jars, leave it
    aside."""

    def arguments(self, *, secured: bool, bearer: bool = False) -> list[str]:
        """Return the class path and the main class, as arguments of `java`. With `bearer`, a
        secured server wants a token."""
        # In the same order each time, and what is secured last: else the archive does not fit.
        sets = ("server", "security") if secured else ("server",)
        jars = [str(jar) for name in sets for jar in sorted((self.folder / name).glob("*.jar"))]
        main = "secured.SecuredEurekaServer" if secured else "open.OpenEurekaServer"
        if bearer:
            main = "bearer.BearerEurekaServer"
        shared = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive else []
        return [*shared, "-cp", ":".join([str(self.folder / _CLASSES), *jars]), main]


def eureka() -> EurekaProgram:
    """Return the Eureka server, downloaded and compiled first when the cache lacks it. Raises
    BuildError."""
    runtime = java()

    def build(folder: Path) -> None:
        download(locked_jars(), folder)
        (compiler,) = (folder / "compiler").glob("ecj-*.jar")
        class_path = ":".join(
            str(jar) for name in ("server", "security") for jar in (folder / name).glob("*.jar")
        )
        options = [
            "-source",
            _JAVA_RELEASE,
            "-target",
            _JAVA_RELEASE,
            "-cp",
            class_path,
            "-d",
            f"{folder}/classes",
        ]
        run_logged("eureka", [runtime, "-jar", compiler, *options, *_SOURCES])
        with zipfile.ZipFile(
            folder / _CLASSES, "w"
        ) as jar:  # an archive wants a class path without folders
            for file in sorted((folder / "classes").rglob("*.class")):
                jar.write(file, file.relative_to(folder / "classes"))

    folder = cached(f"eureka-{EUREKA_VERSION}", [LOCK_FILE, *_SOURCES, _CLASSES], build)
    bare = EurekaProgram(java=runtime, folder=folder)

    def run_once(archive: Path) -> None:
        try:
            _write_archive(bare, archive / _ARCHIVE)
        except BuildError as error:
            say(f"eureka: starts will take longer: {error}")

    inputs = [str(folder), str(runtime), str(java_version(runtime)), _ARCHIVE]
    archive = cached(f"eureka-archive-{EUREKA_VERSION}", inputs, run_once) / _ARCHIVE
    return EurekaProgram(
        java=runtime, folder=folder, archive=archive if archive.is_file() else None
    )


def _write_archive(program: EurekaProgram, archive: Path) -> None:
    """Runs a server until it answers, and ends it; then it writes what it has loaded. Raises
    BuildError."""
    port = free_port()
    url = f"http://{LOOPBACK}:{port}/eureka"
    command = [
        str(program.java),
        "-XX:+UseSerialGC",
        f"-XX:ArchiveClassesAtExit={archive}",
        *program.arguments(secured=False),
        f"--server.address={LOOPBACK}",
        f"--server.port={port}",
        "--eureka.instance.hostname=localhost",
        f"--eureka.client.service-url.defaultZone={url}/",
        "--eureka.client.register-with-eureka=false",
        "--eureka.client.fetch-registry=false",
    ]
    say("eureka: one start and end, for an archive of its classes")
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + _FIRST_START_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise BuildError("it did not start for its archive")
            time.sleep(0.2)
        process.terminate()
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise BuildError("it did not end for its archive") from error
    finally:
        process.kill()
        process.wait()
    if not archive.is_file():
        raise BuildError("this Java wrote no archive")


def _answers(url: str) -> bool:
    try:
        return all(
            requests.get(f"{url}/apps", headers={"Accept": accept}, timeout=10).ok
            for accept in ("application/json", "application/xml")
        )
    except requests.RequestException:
        return False
