"""Owns what a Spring Eureka server is run from: the verified jars and our two classes, one of them with security.

The classes are compiled with the Eclipse compiler, one of the jars, so that a Java without `javac` is enough.
"""

from dataclasses import dataclass
from pathlib import Path

from .cache import cached, run_logged
from .eureka_jars import LOCK_FILE, download, locked_jars
from .toolchains import java

EUREKA_VERSION = "boot-4.0.7-cloud-2025.1.2"
_SOURCES = tuple(sorted((LOCK_FILE.parent / "src").rglob("*.java")))
_JAVA_RELEASE = "17"


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaProgram:
    """A Eureka server ready to be started."""

    java: Path
    folder: Path

    def arguments(self, *, secured: bool) -> list[str]:
        """Return the class path and the main class, as arguments of `java`."""
        sets = ("server", "security") if secured else ("server",)
        class_path = ":".join([f"{self.folder}/classes", *(f"{self.folder}/{name}/*" for name in sets)])
        return ["-cp", class_path, "secured.SecuredEurekaServer" if secured else "open.OpenEurekaServer"]


def eureka() -> EurekaProgram:
    """Return the Eureka server, downloaded and compiled first when the cache lacks it. Raises BuildError."""
    runtime = java()

    def build(folder: Path) -> None:
        download(locked_jars(), folder)
        (compiler,) = (folder / "compiler").glob("ecj-*.jar")
        class_path = ":".join(str(jar) for name in ("server", "security") for jar in (folder / name).glob("*.jar"))
        options = ["-source", _JAVA_RELEASE, "-target", _JAVA_RELEASE, "-cp", class_path, "-d", f"{folder}/classes"]
        run_logged("eureka", [runtime, "-jar", compiler, *options, *_SOURCES])

    return EurekaProgram(java=runtime, folder=cached(f"eureka-{EUREKA_VERSION}", [LOCK_FILE, *_SOURCES], build))
