"""The CRD that is part of the package, with the only schema of a EurekaSyncer."""

from __future__ import annotations

import importlib.resources
from functools import cache
from pathlib import Path
from typing import Any, cast

from eurekube_sync.manifests.documents import read_documents
from eurekube_sync.model.errors import ConfigurationError

FILE_NAME = "eurekasyncer.yaml"
KIND, GROUP, API_VERSION = "EurekaSyncer", "eurekube.io", "eurekube.io/v1"


@cache
def crd_text() -> str:
    """Return the CRD as YAML, from the installed package or else from the checkout around this
    file."""
    installed = importlib.resources.files("eurekube_sync").joinpath("crds", FILE_NAME)
    checkout = Path(__file__).resolve().parents[2] / "crds" / FILE_NAME
    for source in (installed, checkout):
        if source.is_file():
            return source.read_text(encoding="utf-8")
    raise ConfigurationError(
        f"the package is incomplete: {FILE_NAME} is missing; install eurekube-sync again"
    )


@cache
def load_crd() -> dict[str, Any]:
    """Return the CRD as plain values. They are shared: do not change them."""
    (document,) = read_documents(crd_text(), file=FILE_NAME)
    if document.findings:
        raise ConfigurationError(
            f"the package is incomplete: {document.findings[0]}; install eurekube-sync again"
        )
    return cast(dict[str, Any], document.value)


def object_schema() -> dict[str, Any]:
    """Return the structural schema of the stored version. It is shared: do not change it."""
    (version,) = (version for version in load_crd()["spec"]["versions"] if version["storage"])
    return cast(dict[str, Any], version["schema"]["openAPIV3Schema"])
