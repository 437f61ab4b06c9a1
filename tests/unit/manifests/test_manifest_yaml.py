"""Our YAML files can be written again by every tool: kubectl, kustomize and Helm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eurekube_sync.manifests.crd import object_schema
from eurekube_sync.manifests.schema import go_pattern

ROOT = Path(__file__).parents[3]
FILES = [path for folder in ("crds", "cronjob") for path in (ROOT / folder).rglob("*.yaml")]
SHIPPED = sorted(path for path in FILES if path.parent.name != "templates")
FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that no YAML text may hold, https://yaml.org/spec/1.2.2/#51-character-set."""


def texts(value: Any) -> Iterator[str]:
    """Each string of a value, including keys."""
    if isinstance(value, str):
        yield value
    for part in (
        value.items()
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else ()
    ):
        yield from texts(part)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_files_can_be_written_as_yaml_again(path: Path) -> None:
    """No value has a character that YAML forbids. The written text reads the same."""
    documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    assert [text for text in texts(documents) if FORBIDDEN.search(text)] == []
    for unicode in (False, True):
        again = yaml.safe_dump_all(documents, allow_unicode=unicode)
        assert list(yaml.safe_load_all(again)) == documents


def test_a_metadata_value_may_hold_each_character_but_those_that_break_the_registry() -> None:
    """The pattern refuses the control characters, U+FFFE and U+FFFF, and takes each other code
    point."""
    schema = object_schema()["properties"]["spec"]["properties"]["metadata"]["additionalProperties"]
    pattern = go_pattern(schema["pattern"])
    refused = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")
    characters = map(chr, range(0x110000))
    assert [
        one
        for one in characters
        if (pattern.search(one) is None) is not (refused.match(one) is not None)
    ] == []
