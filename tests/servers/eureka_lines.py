"""Owns which lines of Eureka servers there are to test with: those of Spring Cloud, each with its
Spring Boot, and Netflix's own.

The newest is what every test runs on. The variable `EUREKUBE_SYNC_TEST_EUREKA` names another line;
`tests.compatibility` sets it. With two names, such as `Edgware,2025.1`, the second is that of the
second server of a pair.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

LINE_VARIABLE = "EUREKUBE_SYNC_TEST_EUREKA"
JAVA_SOURCES = Path(__file__).parent / "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaLine:
    """A line of Eureka servers, in its last release that the registry has."""

    name: str
    cloud: str = ""
    """The release of Spring Cloud; empty for Netflix's own server."""
    boot: str = ""
    """The release of Spring Boot."""
    java_release: str = "17"
    """What our class is compiled for."""
    profiles: tuple[str, ...] = ()
    """Profiles of the pom that it needs as well."""
    lock: Path
    """The lock file of its jars."""

    @property
    def version(self) -> str:
        """What it is built from, for the name of a folder."""
        return f"boot-{self.boot}-cloud-{self.cloud}" if self.cloud else self.name.lower()

    @property
    def pom(self) -> Path:
        """What the lock file is made from."""
        return JAVA_SOURCES / ("pom.xml" if self.cloud else "netflix.xml")


def _old(name: str, cloud: str, boot: str, *profiles: str) -> EurekaLine:
    return EurekaLine(
        name=name,
        cloud=cloud,
        boot=boot,
        java_release="1.8",
        profiles=profiles,
        lock=JAVA_SOURCES / "lines" / f"{name}.lock",
    )


NEWEST = EurekaLine(name="2025.1", cloud="2025.1.2", boot="4.0.7", lock=JAVA_SOURCES / "jars.lock")
NETFLIX = EurekaLine(
    name="Netflix-1.10", java_release="1.8", lock=JAVA_SOURCES / "lines" / "Netflix-1.10.lock"
)
_LINES = (
    NETFLIX,
    _old("Edgware", "Edgware.SR6", "1.5.22.RELEASE", "jaxb"),
    _old("Greenwich", "Greenwich.SR6", "2.1.18.RELEASE"),
    _old("Hoxton", "Hoxton.SR12", "2.3.12.RELEASE"),
    _old("2020.0", "2020.0.6", "2.5.15"),
    _old("2021.0", "2021.0.9", "2.7.18"),
    EurekaLine(
        name="2023.0",
        cloud="2023.0.6",
        boot="3.3.13",
        lock=JAVA_SOURCES / "lines" / "2023.0.lock",
    ),
    EurekaLine(
        name="2025.0", cloud="2025.0.0", boot="3.5.7", lock=JAVA_SOURCES / "lines" / "2025.0.lock"
    ),
    NEWEST,
)
LINES = {line.name: line for line in _LINES}


def chosen_lines() -> tuple[EurekaLine, EurekaLine]:
    """Return the line of a server, and that of the second one of a pair. Raises KeyError for a
    name that is no line."""
    names = os.environ.get(LINE_VARIABLE, NEWEST.name).split(",")
    return LINES[names[0]], LINES[names[-1]]
