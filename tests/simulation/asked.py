"""The fields of a syncer's spec, as a story writes them and as the oracle reads them back from the
API.

By the words of the contract, and shared with nothing in the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

SYNC = "Sync"
UPSERT_ONLY = "UpsertOnly"
CREATE_ONLY = "CreateOnly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`3`, `20%` of our pods, or `{share: 10%}` of all UP instances of the VIP."""

    kind: str
    """`count`, `pods` or `share`."""
    value: int

    @property
    def written(self) -> Any:
        """The value as the spec has it."""
        percent = f"{self.value}%"
        return {"count": self.value, "pods": percent, "share": {"share": percent}}[self.kind]

    def places(self, *, pods: int, others: int) -> int:
        """How many instances may be UP. Percentages round up, and one above zero gives at least
        one."""
        match self.kind:
            case "count":
                return self.value
            case "pods":
                return -(-self.value * pods // 100)
        if self.value == 100:
            return 10**6
        return max(-(-self.value * others // (100 - self.value)), min(self.value, 1))

    def __str__(self) -> str:
        return {
            "count": f"{self.value}",
            "pods": f"{self.value}%",
            "share": f"share {self.value}%",
        }[self.kind]


def limit_of(written: Any) -> Limit | None:
    """Reads the limit of a spec."""
    if isinstance(written, int):
        return Limit(kind="count", value=written)
    if isinstance(written, str):
        return Limit(kind="pods", value=int(written.rstrip("%")))
    return Limit(kind="share", value=int(written["share"].rstrip("%"))) if written else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The fields of a spec, beside its pods and its name. The defaults are the program's."""

    mode: str = "pod"
    address: str = "ClusterIP"
    """With mode `service`: the kind of the Service's address that is an instance."""
    not_ready: str = "Down"
    terminating: str = "Cancel"
    limit: Limit | None = None
    policy: str = SYNC
    suspend: bool = False
    on_duplicate: str = "Skip"
    readiness_gate: bool = False
    version: str = ""
    """The field `metadata`."""
    pod_label: bool = False
    """Whether `metadataFrom` takes a label of the pod, for which pods are listed."""
    zone: bool = False
    """Whether `zone` takes that of the endpoint, for which nodes are listed."""
    port: str = ""
    """The name of the Service's port; empty for the default."""

    def written(self) -> dict[str, Any]:
        """The fields as a spec; None for those that are not set."""
        reached = {"address": self.address} if self.mode == "service" else None
        return {
            "mode": self.mode,
            "service": reached,
            "notReady": _said(self.not_ready, "Down"),
            "terminating": _said(self.terminating, "Cancel"),
            "limit": self.limit.written if self.limit else None,
            "policy": _said(self.policy, SYNC),
            "suspend": self.suspend or None,
            "onDuplicate": _said(self.on_duplicate, "Skip"),
            "readinessGate": self.readiness_gate or None,
            "metadata": {"version": self.version} if self.version else None,
            "metadataFrom": [{"key": "tier", "podLabel": "tier"}] if self.pod_label else None,
            "zone": {"fromEndpoint": True} if self.zone else None,
            "port": self.port or None,
        }

    def __str__(self) -> str:
        said = [
            f"{field.name} {value}" if not isinstance(value, bool) else field.name
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return ", ".join(said)


PLAIN = Asked()


def asked_by(spec: Mapping[str, Any]) -> Asked:
    """Reads the fields of a spec."""
    return Asked(
        mode=spec.get("mode", "pod"),
        address=spec.get("service", {}).get("address", "Auto")
        if spec.get("mode") == "service"
        else "ClusterIP",
        not_ready=spec.get("notReady", "Down"),
        terminating=spec.get("terminating", "Cancel"),
        limit=limit_of(spec.get("limit")),
        policy=spec.get("policy", SYNC),
        suspend=spec.get("suspend", False),
        on_duplicate=spec.get("onDuplicate", "Skip"),
        readiness_gate=spec.get("readinessGate", False),
        version=spec.get("metadata", {}).get("version", ""),
        pod_label="metadataFrom" in spec,
        zone="zone" in spec,
        port=spec.get("port", ""),
    )


def _said(value: str, default: str) -> str | None:
    return None if value == default else value
