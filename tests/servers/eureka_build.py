"""Owns what a Eureka server is run from: the verified jars of its line and our classes, two of them
with security.

The classes are compiled with the Eclipse compiler, one of the jars, so that a Java without `javac`
is enough. An archive of all classes that a start loads (AppCDS, JEP 350) halves what a start takes:
tests start dozens of servers.
"""

import re
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests

from .cache import BuildError, cached, run_logged, say
from .eureka_jars import COMPILER, download, locked_jars
from .eureka_lines import JAVA_SOURCES, NETFLIX, NEWEST, EurekaLine
from .process import LOOPBACK, free_port
from .toolchains import java, java_version

_OPEN = JAVA_SOURCES / "src" / "open" / "OpenEurekaServer.java"
_SECURED = JAVA_SOURCES / "src" / "secured" / "SecuredEurekaServer.java"
_BEARER = JAVA_SOURCES / "src" / "bearer" / "BearerEurekaServer.java"
_NETFLIX = JAVA_SOURCES / "netflix" / "NetflixEurekaServer.java"
_FIRST_START_SECONDS = 300.0
_END_SECONDS = 120.0
_CLASSES = "classes.jar"
_ARCHIVE = "classes.jsa"
_MAIN_CLASSES = {_OPEN: "open.OpenEurekaServer", _NETFLIX: "netflix.NetflixEurekaServer"}
# What Java 9 closed, and lines older than it read and write.
_PACKAGES = ("io", "lang", "lang.reflect", "math", "net", "text", "util", "util.concurrent")
_OPENED = (*(f"java.base/java.{package}" for package in _PACKAGES), "java.desktop/java.awt.font")
_ADD_OPENS = tuple(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED)
_NETFLIX_NAMES = {
    "eureka.client.register-with-eureka": "eureka.registration.enabled",
    "eureka.client.fetch-registry": "eureka.shouldFetchRegistry",
    "eureka.client.service-url.defaultZone": "eureka.serviceUrl.default",
    "eureka.server.registry-sync-retries": "eureka.numberRegistrySyncRetries",
}
"""Where a name of Spring's is not Netflix's own with a prefix and hyphens."""
# By itself it waits five minutes for a peer to copy from, in which a list is a 403.
_NETFLIX_PROPERTIES = {
    "eureka.shouldUseDns": "false",
    "eureka.region": "default",
    "eureka.waitTimeInMsWhenSyncEmpty": "0",
    "eureka.numberRegistrySyncRetries": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaProgram:
    """A Eureka server ready to be started."""

    line: EurekaLine
    java: Path
    folder: Path
    archive: Path | None = None
    """Without it a start takes longer; a Java that it was not made by, or other jars, leave it
    aside."""

    @property
    def path(self) -> str:
        """Where its API begins."""
        return "/eureka/v2" if self.line is NETFLIX else "/eureka"

    def command(
        self,
        properties: Mapping[str, str],
        *,
        secured: bool = False,
        bearer: bool = False,
        jvm_options: Sequence[str] = (),
    ) -> list[str]:
        """Return the command line of a server with Spring's properties, of which Netflix's own
        knows those that begin with `eureka`. A `secured` one wants a login, a `bearer` one a
        token."""
        started = [str(self.java), *jvm_options, *self._jvm_options()]
        if self.line is NETFLIX:
            named = netflix_properties(properties)
            settings = [f"-D{name}={value}" for name, value in named.items()]
            address = [properties["server.address"], properties["server.port"]]
            return [*started, *settings, *self._class_path(), _MAIN_CLASSES[_NETFLIX], *address]
        main = _MAIN_CLASSES[_OPEN]
        if bearer:
            main = "bearer.BearerEurekaServer"
        elif secured:
            main = "secured.SecuredEurekaServer"
        settings = [f"--{key}={value}" for key, value in properties.items()]
        return [*started, *self._class_path(secured=secured or bearer), main, *settings]

    def _jvm_options(self) -> list[str]:
        shared = [f"-XX:SharedArchiveFile={self.archive}"] if self.archive else []
        return [*shared, *(_ADD_OPENS if self.line.java_release == "1.8" else ())]

    def _class_path(self, *, secured: bool = False) -> list[str]:
        # In the same order each time, and what is secured last: else the archive does not fit.
        sets = ("server", "security") if secured else ("server",)
        jars = [str(jar) for name in sets for jar in sorted((self.folder / name).glob("*.jar"))]
        return ["-cp", ":".join([str(self.folder / _CLASSES), *jars])]


def netflix_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the system properties that stand for Spring's: `eureka.server.a-b` is `eureka.aB`."""
    named = dict(_NETFLIX_PROPERTIES)
    own_url = f"http://{properties['eureka.instance.hostname']}:{properties['server.port']}/"
    for name, value in properties.items():
        if not name.startswith("eureka.") or value.startswith(own_url):
            continue  # Spring's alone; and it names itself
        plain = re.sub(r"^eureka\.(server|client|instance)\.", "eureka.", name)
        camel = re.sub(r"-(\w)", lambda match: match[1].upper(), plain)
        named[_NETFLIX_NAMES.get(name, camel)] = value
    return named


def eureka(line: EurekaLine = NEWEST) -> EurekaProgram:
    """Return the Eureka server of a line, downloaded and compiled first when the cache lacks it.
    Raises BuildError."""
    runtime = java()
    sources = _sources(line)
    compiler_jars = [jar for jar in locked_jars() if jar.jar_set == COMPILER]
    jars = {jar.coordinate: jar for jar in (*locked_jars(line.lock), *compiler_jars)}

    def build(folder: Path) -> None:
        download(tuple(jars.values()), folder)
        (compiler,) = (folder / COMPILER).glob("ecj-*.jar")
        class_path = ":".join(
            str(jar) for name in ("server", "security") for jar in (folder / name).glob("*.jar")
        )
        options = [
            "-source",
            line.java_release,
            "-target",
            line.java_release,
            "-cp",
            class_path,
            "-d",
            f"{folder}/classes",
        ]
        run_logged(f"eureka-{line.name}", [runtime, "-jar", compiler, *options, *sources])
        with zipfile.ZipFile(
            folder / _CLASSES, "w"
        ) as jar:  # an archive wants a class path without folders
            for file in sorted((folder / "classes").rglob("*.class")):
                jar.write(file, file.relative_to(folder / "classes"))

    folder = cached(f"eureka-{line.version}", [line.lock, *sources, _CLASSES], build)
    bare = EurekaProgram(line=line, java=runtime, folder=folder)

    def run_once(archive: Path) -> None:
        try:
            _write_archive(bare, archive / _ARCHIVE)
        except BuildError as error:
            say(f"eureka: starts will take longer: {error}")

    inputs = [str(folder), str(runtime), str(java_version(runtime)), _ARCHIVE]
    archive = cached(f"eureka-archive-{line.version}", inputs, run_once) / _ARCHIVE
    return EurekaProgram(
        line=line, java=runtime, folder=folder, archive=archive if archive.is_file() else None
    )


def _sources(line: EurekaLine) -> tuple[Path, ...]:
    """Our classes that a line is started by. Only the newest has those with security."""
    if line is NETFLIX:
        return (_NETFLIX,)
    return (_BEARER, _OPEN, _SECURED) if line is NEWEST else (_OPEN,)


def _write_archive(program: EurekaProgram, archive: Path) -> None:
    """Runs a server until it answers, and ends it; then it writes what it has loaded. Raises
    BuildError."""
    port = free_port()
    url = f"http://{LOOPBACK}:{port}{program.path}"
    properties = {
        "server.address": LOOPBACK,
        "server.port": str(port),
        "eureka.instance.hostname": "localhost",
        "eureka.client.service-url.defaultZone": f"http://localhost:{port}/eureka/",
        "eureka.client.register-with-eureka": "false",
        "eureka.client.fetch-registry": "false",
    }
    options = ("-XX:+UseSerialGC", f"-XX:ArchiveClassesAtExit={archive}")
    say(f"eureka: one start and end of {program.line.name}, for an archive of its classes")
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            program.command(properties, jvm_options=options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=directory,
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
