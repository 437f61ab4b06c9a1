"""docs/eurekasyncer.md describes the CRD, and the examples of both work."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.manifests.documents import Severity
from tests.cases import manifest_of, validate_object

ROOT = Path(__file__).parents[3]
SPEC = load_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def reference() -> ModuleType:
    """docs/reference.py, which belongs to no package."""
    found = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def fields(schema: Any, path: str = "spec") -> Iterator[tuple[str, Any]]:
    """Each field of the spec, however deep."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field.get("items", field), f"{path}.{name}")


def test_the_page_is_what_the_crd_says() -> None:
    """A change of the CRD needs `python docs/reference.py`."""
    module = reference()
    assert module.PAGE.read_text(encoding="utf-8") == module.page()


@pytest.mark.parametrize(
    ("path", "field"), [pytest.param(*each, id=each[0]) for each in fields(SPEC)]
)
def test_each_field_has_its_meaning_and_an_example(path: str, field: Any) -> None:
    """They are in the CRD's description, which `kubectl explain` also shows."""
    meaning, _, example = reference()._described(field)
    assert meaning
    assert (example[:1], example[-1:]) == ("`", "`"), path


@pytest.mark.parametrize("name", list(SPEC["properties"]))
def test_the_example_of_a_field_would_be_taken(name: str) -> None:
    """It is valid in one of the two modes."""
    example = yaml.safe_load(reference()._described(SPEC["properties"][name])[2].strip("`"))
    specs = [
        {"selector": {"app": "rating"}, "mode": mode, name: example} for mode in ("pod", "service")
    ]
    errors = [
        [f for f in validate_object(manifest_of(spec)) if f.severity is Severity.ERROR]
        for spec in specs
    ]
    assert [] in errors, errors
