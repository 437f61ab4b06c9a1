"""What kustomize and Helm make of `cronjob/`, as data: a list of documents."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.servers.go_builds import KUBERNETES_VERSION, helm, kubernetes

ROOT = Path(__file__).parents[2]
CRONJOB = ROOT / "cronjob"
CHART = CRONJOB / "chart"
NAME = "eurekube-sync"
NAMESPACE = "eurekube-sync"
IMAGE = "registry.example.com/eurekube-sync"
NETWORK = "10.20.0.0/16"
NETWORKS = {"EUREKUBE_SYNC_IMPORT_NETWORKS": NETWORK}
Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Form:
    """One way to install it, for both tools."""

    folder: str = "base"
    components: tuple[str, ...] = ()
    namespace: str = NAMESPACE
    settings: Mapping[str, str] = field(default_factory=dict)
    """Beside owner and URL; those of Helm have no namespaces, nor networks, which `values` name."""
    values: Mapping[str, Any] = field(default_factory=dict)
    owner: str = "my-cluster"
    eureka_url: str = "http://eureka.example.com:8761/eureka"

    @property
    def kustomization(self) -> Json:
        """What an operator writes, but for the paths."""
        settings = {
            "EUREKUBE_SYNC_OWNER": self.owner,
            "EUREKUBE_SYNC_EUREKA_URL": self.eureka_url,
            **self.settings,
        }
        literals = [f"{name}={value}" for name, value in settings.items()]
        return {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": self.namespace,
            "images": [{"name": NAME, "newName": IMAGE}],
            "configMapGenerator": [{"name": NAME, "behavior": "merge", "literals": literals}],
        }

    @cached_property
    def kustomized(self) -> str:
        """The YAML that kustomize makes."""
        with tempfile.TemporaryDirectory() as folder:
            up = Path(os.path.relpath(CRONJOB, Path(folder).resolve()))
            paths = {
                "resources": [str(up / self.folder)],
                "components": [str(up / each) for each in self.components],
            }
            (Path(folder) / "kustomization.yaml").write_text(json.dumps(self.kustomization | paths))
            return output(kubernetes() / "kubectl", "kustomize", folder)

    @cached_property
    def all_values(self) -> Json:
        """Those of the chart."""
        settings = {
            name: value
            for name, value in self.settings.items()
            if name not in ("EUREKUBE_SYNC_NAMESPACE", *NETWORKS)
        }
        return {
            "owner": self.owner,
            "eurekaUrl": self.eureka_url,
            "image": {"repository": IMAGE},
            "settings": settings,
            **self.values,
        }

    def templated(self, major: int = 4) -> str:
        """The YAML that Helm makes."""
        options = (
            "--namespace",
            self.namespace,
            "--kube-version",
            KUBERNETES_VERSION,
            "--values",
            "-",
        )
        return output(
            helm(major), "template", NAME, CHART, *options, stdin=json.dumps(self.all_values)
        )


FORMS = {
    "cronjob": Form(),
    "daemon": Form(folder="daemon", values={"mode": "daemon"}),
    "monitoring": Form(
        folder="daemon", components=("monitoring",), values={"mode": "daemon", "monitoring": True}
    ),
    "namespaced": Form(
        folder="namespaced",
        namespace="shop",
        settings={"EUREKUBE_SYNC_NAMESPACE": "shop"},
        values={"namespaces": ["shop"]},
    ),
    "every right": Form(
        components=(
            "rights/nodes",
            "rights/ingresses",
            "rights/gateways",
            "rights/readiness-gate",
            "rights/imports",
        ),
        settings={"EUREKUBE_SYNC_LOG_FORMAT": "json", **NETWORKS},
        values={
            "rights": {"nodes": True, "ingresses": True, "gateways": True, "readinessGate": True},
            "imports": {"networks": [NETWORK]},
        },
    ),
    "imports of a namespace": Form(
        folder="namespaced",
        components=("rights/imports",),
        namespace="shop",
        settings={"EUREKUBE_SYNC_NAMESPACE": "shop", **NETWORKS},
        values={"namespaces": ["shop"], "imports": {"networks": [NETWORK]}},
    ),
}
"""Each is rendered by both tools, and by both in the same way."""


def documents(text: str) -> list[Json]:
    """In an order of their own. A ConfigMap of kustomize has a hash in its name, and a pod of Helm
    an annotation with the checksum, so that pods are replaced when it changes: both are left
    out."""
    found = [document for document in yaml.safe_load_all(text) if document]
    for document in found:
        name = document["metadata"]["name"]
        if (
            document["kind"] == "ConfigMap"
            and name.startswith(f"{NAME}-")
            and not name.endswith(("-rules", "-dashboard"))
        ):
            return documents(text.replace(name, NAME))
        if document["kind"] == "Deployment":
            document["spec"]["template"]["metadata"].pop("annotations", None)
    return sorted(
        found,
        key=lambda each: (
            each["kind"],
            each["metadata"].get("namespace", ""),
            each["metadata"]["name"],
        ),
    )


def shipped() -> list[Json]:
    """The CronJob for a whole cluster, with all that belongs to it."""
    return documents(FORMS["cronjob"].kustomized)


def of_kind(found: Sequence[Json], *kinds: str) -> list[Json]:
    """The documents of these kinds."""
    return [document for document in found if document["kind"] in kinds]


def workload(found: Sequence[Json]) -> Json:
    """The one that makes pods."""
    (only,) = of_kind(found, "CronJob", "Deployment")
    return only


def pod_template(document: Json) -> Json:
    """That of a CronJob or Deployment."""
    spec: Json = document["spec"]
    template: Json = (spec["jobTemplate"]["spec"] if document["kind"] == "CronJob" else spec)[
        "template"
    ]
    return template


def output(command: Path, *arguments: str | Path, stdin: str | None = None) -> str:
    """What it prints; AssertionError, with what it says, when it fails."""
    done = subprocess.run(
        [command, *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
