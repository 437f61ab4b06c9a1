"""Owns how one class of ours is compiled against jars: with the Eclipse compiler, which a Java
without `javac` runs too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .cache import cached, run_logged
from .eureka_build import eureka
from .eureka_jars import download, locked_jars


def compiled(name: str, source: Path, jars: Sequence[Path], *, release: int) -> Path:
    """Return the folder of the compiled source, compiled first when the cache lacks it. `release`
    is the oldest Java that runs it. Raises BuildError."""
    program = eureka()

    def build(folder: Path) -> None:
        (compiler,) = (program.folder / "compiler").glob("ecj-*.jar")
        options = ["-source", str(release), "-target", str(release), "-proc:none"]
        options += ["-cp", ":".join(str(jar) for jar in jars), "-d", str(folder)]
        run_logged(name, [program.java, "-jar", compiler, *options, source])

    return cached(name, [source, *(str(jar) for jar in jars)], build)


def class_path(lock: Path, jar_set: str, source: Path, *, release: int) -> str:
    """Return the class path of the compiled source and one set of jars of a lock file, which are
    downloaded first when the cache lacks them. Raises BuildError."""
    locked = [jar for jar in locked_jars(lock) if jar.jar_set == jar_set]

    def build(folder: Path) -> None:
        download(locked, folder)

    name = f"spring-{jar_set}"
    folder = cached(name, [jar.sha256 for jar in locked], build)
    jars = sorted((folder / jar_set).glob("*.jar"))
    classes = compiled(f"{name}-reader", source, jars, release=release)
    return ":".join(str(part) for part in (classes, *jars))
