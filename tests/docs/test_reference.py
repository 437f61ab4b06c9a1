"""docs/eurekasyncer.md and docs/eurekaimport.md describe the CRDs, and the examples work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eurekube_sync.manifests.crd import FILE_NAMES, object_schema
from eurekube_sync.manifests.documents import Severity
from eurekube_sync.model.imports import IMPORT
from tests.cases import manifest_of, validate_object
from tests.docs.programs import program

ROOT = Path(__file__).parents[2]
SPECS = {kind: object_schema(kind)["properties"]["spec"] for kind in FILE_NAMES}
SPEC, IMPORTS = SPECS.values()


def fields(schema: Any, path: str = "spec") -> Iterator[tuple[str, Any]]:
    """Each field of the spec, however deep."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field.get("items", field), f"{path}.{name}")


@pytest.mark.parametrize("kind", FILE_NAMES)
def test_the_page_is_what_the_crd_says(kind: str) -> None:
    """A change of the CRD needs `python docs/reference.py`."""
    module = program("reference")
    assert module.PAGES[kind].read_text(encoding="utf-8") == module.page(kind)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        pytest.param(path, field, id=f"{kind} {path}")
        for kind, spec in SPECS.items()
        for path, field in fields(spec)
    ],
)
def test_each_field_has_its_meaning_and_an_example(path: str, field: Any) -> None:
    """They are in the CRD's description, which `kubectl explain` also shows."""
    meaning, _, example = program("reference")._described(field)
    assert meaning
    assert (example[:1], example[-1:]) == ("`", "`"), path


@pytest.mark.parametrize("name", list(IMPORTS["properties"]))
def test_the_example_of_a_field_of_an_import_would_be_taken(name: str) -> None:
    """It is valid alone."""
    example = yaml.safe_load(
        program("reference")._described(IMPORTS["properties"][name])[2].strip("`")
    )
    assert validate_object(manifest_of({name: example}, IMPORT)) == ()


@pytest.mark.parametrize("name", list(SPEC["properties"]))
def test_the_example_of_a_field_would_be_taken(name: str) -> None:
    """It is valid in one of the two modes."""
    example = yaml.safe_load(
        program("reference")._described(SPEC["properties"][name])[2].strip("`")
    )
    specs = [
        {"selector": {"app": "rating"}, "mode": mode, name: example} for mode in ("pod", "service")
    ]
    errors = [
        [f for f in validate_object(manifest_of(spec)) if f.severity is Severity.ERROR]
        for spec in specs
    ]
    assert [] in errors, errors
