"""What a check found, as values."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.values import dataclass


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and a person should look at it; or it could not be looked at."""
    FAILED = "failed"
    """A pass cannot do its work."""


class Check(StrEnum):
    """What was looked at. docs/troubleshooting.md has each, in this order."""

    KUBERNETES = "Kubernetes"
    RIGHTS = "Rights"
    CRD = "Crd"
    EUREKA_READ = "EurekaRead"
    EUREKA_WRITE = "EurekaWrite"
    REPLICAS = "Replicas"
    SELF_PRESERVATION = "SelfPreservation"
    CLOCK = "Clock"
    OWNER = "Owner"
    HEARTBEAT = "Heartbeat"
    DRAIN_TIME = "DrainTime"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line."""

    check: Check
    grade: Grade
    text: str
    """One sentence without its end."""
    fix: str = ""
    """The one thing to do; empty where all is well."""
    manifest: str = ""
    """Lines of YAML to add; empty for none."""

    @property
    def docs(self) -> str:
        """Where more is said of it; empty where all is well."""
        return "" if self.grade is Grade.OK else f"docs/troubleshooting.md#{self.check.value.lower()}"


def code_of(found: Iterable[Finding]) -> ExitCode:
    """0 unless something failed: a warning stops no pipeline."""
    return ExitCode.CHECK_FAILED if any(one.grade is Grade.FAILED for one in found) else ExitCode.OK
