"""The CRDs that are part of the package, with the only schemas of our two kinds."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from eurekube_sync.manifests.documents import read_documents
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.imports import IMPORT

GROUP, API_VERSION = "eurekube.io", "eurekube.io/v1"
KIND = "EurekaSyncer"
FILE_NAMES: Mapping[str, str] = {KIND: "eurekasyncer.yaml", IMPORT: "eurekaimport.yaml"}
"""The file of each kind, in `crds`."""


@cache
def crd_text(kind: str = KIND) -> str:
    """Return a kind's CRD as YAML, from the installed package or else from the checkout around this
    file."""
    name = FILE_NAMES[kind]
    installed = importlib.resources.files("eurekube_sync").joinpath("crds", name)
    checkout = Path(__file__).resolve().parents[2] / "crds" / name
    for source in (installed, checkout):
        if source.is_file():
            return source.read_text(encoding="utf-8")
    raise ConfigurationError(
        f"the package is incomplete: {name} is missing; install eurekube-sync again"
    )


def crd_texts() -> str:
    """Return all CRDs as one stream of YAML."""
    return "---\n".join(map(crd_text, FILE_NAMES))


@cache
def load_crd(kind: str = KIND) -> dict[str, Any]:
    """Return a kind's CRD as plain values. They are shared: do not change them."""
    (document,) = read_documents(crd_text(kind), file=FILE_NAMES[kind])
    if document.findings:
        raise ConfigurationError(
            f"the package is incomplete: {document.findings[0]}; install eurekube-sync again"
        )
    return cast(dict[str, Any], document.value)


def load_crds() -> list[dict[str, Any]]:
    """Return all CRDs, as `load_crd` does."""
    return [load_crd(kind) for kind in FILE_NAMES]


def object_schema(kind: str = KIND) -> dict[str, Any]:
    """Return the structural schema of the stored version. It is shared: do not change it."""
    versions = load_crd(kind)["spec"]["versions"]
    (stored,) = [version for version in versions if version["storage"]]
    return cast(dict[str, Any], stored["schema"]["openAPIV3Schema"])
