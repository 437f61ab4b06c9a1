"""Owns how one class of ours is compiled against jars: with the Eclipse compiler, which a Java
without `javac` runs too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .cache import cached, run_logged
from .eureka_build import eureka


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
