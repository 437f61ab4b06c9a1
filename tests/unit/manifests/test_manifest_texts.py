"""Reading YAML and JSON: the same values as kubectl, with lines, and protected from harmful
input."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.manifests.documents import Finding, read_documents
from eurekube_sync.manifests.yaml_text import resolve


def only(text: str) -> tuple[Any, list[str]]:
    """Value and findings of a text with one document."""
    (document,) = read_documents(text, file="f.yaml")
    return document.value, [
        f"{finding.line} {finding.path} {finding.reason}" for finding in document.findings
    ]


# The values of sigs.k8s.io/yaml v1.6.0, which kubectl uses.
SCALARS: list[tuple[str, Any]] = [
    *(
        (word, True)
        for word in ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")
    ),
    *(
        (word, False)
        for word in ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")
    ),
    *((word, None) for word in ("", "~", "null", "Null", "NULL")),
    *(
        (word, word)
        for word in (
            "oN",
            "tRue",
            "inf",
            ".inf",
            "=",
            "10%",
            "2026-01-01",
            "12:30:45",
            "0b12",
            "0x",
            "1e",
        )
    ),
    *((word, word) for word in ("_1", "0o8", "1e999", "._5", ".", "-", "0x1p3")),
    *(
        (word, 15)
        for word in (
            "15",
            "+15",
            "017",
            "0o17",
            "0O17",
            "0xF",
            "0b1111",
            "1_5",
            "15.0",
            "15.",
            "1.5e1",
        )
    ),
    *((word, -15) for word in ("-15", "-017", "-0xf", "-0b1111")),
    ("08", 8),
    (".5", 0.5),
    (".7_5", 0.75),
    ("1e3", 1000),
    ("1.5", 1.5),
    ("9223372036854775808", 2**63),
    ("99999999999999999999", 10**20),
    ("1" * 5000, "1" * 5000),
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text[:20] for text, _ in SCALARS])
def test_scalars_are_kubectls(text: str, value: Any) -> None:
    """An unquoted scalar has the meaning that kubectl's YAML library gives it."""
    found = resolve(text)
    assert (type(found), found) == (type(value), value)


TEXTS: list[tuple[str, Any]] = [
    ("a: 'on'", {"a": "on"}),
    ("a: !!str 5", {"a": "5"}),
    ("a: !!int '5'", {"a": 5}),
    ("a: !thing x", {"a": "x"}),
    ("on: 1\n1: 2\n1.5: 3", {"true": 1, "1": 2, "1.5": 3}),
    ("b: &x {c: 1, d: 1}\na: {<<: *x, d: 2}", {"b": {"c": 1, "d": 1}, "a": {"c": 1, "d": 2}}),
    ("b: &x {c: 1}\na: {c: 2, <<: *x}", {"b": {"c": 1}, "a": {"c": 1}}),
    (
        "b: &x {c: 1}\nd: &y {c: 2, e: 3}\na: {<<: [*x, *y]}",
        {"b": {"c": 1}, "d": {"c": 2, "e": 3}, "a": {"c": 1, "e": 3}},
    ),
    ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
    ("%YAML 1.1\n---\na: 1", {"a": 1}),
    ("# c\n\n---\na: 1\n...\n", {"a": 1}),
    ("\ufeffa: 1", {"a": 1}),
    ("a: |\n  ---\n  b\n", {"a": "---\nb\n"}),
    ("{a: b}", {"a": "b"}),
    ('{"a": [1, 2.0, true, null, "\\u00e9"], "b": {}}', {"a": [1, 2, True, None, "é"], "b": {}}),
    ('{\n\t"a": 1}', {"a": 1}),
    ('{"a": "\\ud83d\\ude00 \\/ \\\\ud83d\\\\ude00"}', {"a": "\U0001f600 / \\ud83d\\ude00"}),
    (
        '{"a": "\U0001f600 \x7f \x85 \u2028 \ufeff \uffff"}',
        {"a": "\U0001f600 \x7f \x85 \u2028 \ufeff \uffff"},
    ),
    ("", None),
    ("null", None),
    ("- 1", [1]),
    ("word", "word"),
]


@pytest.mark.parametrize(("text", "value"), TEXTS, ids=[text[:25] for text, _ in TEXTS])
def test_a_text_without_errors_is_read_as_kubectl_reads_it(text: str, value: Any) -> None:
    """A text without errors is read as kubectl reads it."""
    assert only(text) == (value, [])


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
BROKEN = [
    ("a: 1\nb: [\n", "not YAML", 3),
    ("a: 1\n b: 2\n", "not YAML", 2),
    ("\ta: 1", "not YAML", 1),
    ("a: 1\nb: \x00", "U+0000 is not allowed", 2),
    ("a: é\nb: \x07", "U+0007 is not allowed", 2),
    ("a: \ud800", "surrogate", 1),
    (BOMB, "aliases make this more than", 1),
    ("a: &x [*x]", "aliases make this deeper", 1),
    (
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 600)),
        "aliases make this deeper",
        1,
    ),
    ("a: &x {<<: *x, b: *x}", "aliases make this deeper", 1),
    ("a: *x", "found undefined alias 'x'", 1),
    ("[" * 900, "nested deeper", 1),
    ("[" * 100_000, "nest", 1),  # the libyaml in PyYAML 6.0.4 refuses 1000 levels in its own words
    ("a: " + "{b: " * 300 + "}" * 300, "nested deeper", 1),
    ("\n- " * 1 + "- " * 5000 + "x", "nested deeper", 2),
    ("? [a]\n: 1", "a key must be a plain word", 1),
    ("~: 1", "a key must be a plain word", 1),
    ("a:\n  <<: 1", "takes a mapping", 2),
    ("b: &x [{c: 1}]\na: {<<: *x}", "takes a mapping", 2),
    ("a: 1\n...\nb: 1", "not YAML", 3),
    ('{"a": 1,\n "b" 2}', "not JSON: expecting ':' delimiter", 2),
    ('{"a": 1', "not JSON: expecting ',' delimiter", 1),
    ('{"a": \n"\x01"}', "not JSON", 2),
    ('{"a": ' + "[" * 900 + "]" * 900 + "}", "nested deeper", 1),
    ('{"a": ' + "[" * 100_000, "nest", 1),
    ('{"a": ]}', "not JSON: expecting value", 1),
]


@pytest.mark.parametrize(
    ("text", "reason", "line"), BROKEN, ids=[text[:25].replace("\x00", "0") for text, *_ in BROKEN]
)
def test_a_text_that_cannot_be_read_is_one_finding_with_its_line(
    text: str, reason: str, line: int
) -> None:
    (document,) = read_documents(text, file="f.yaml")
    assert document.value is None
    (finding,) = document.findings
    assert reason in finding.reason
    assert (finding.path, finding.line, finding.file) == ("$", line, "f.yaml")


def test_duplicate_keys() -> None:
    """Its finding has both lines, and the first value stays."""
    assert only("a: 1\nb:\n  c: 1\n  c: 2\n") == (
        {"a": 1, "b": {"c": 1}},
        ['4 $.b.c duplicate key "c", first on line 3'],
    )
    assert only("l:\n- {on: 1, yes: 2}") == (
        {"l": [{"true": 1}]},
        ['2 $.l[0].true duplicate key "true", first on line 2'],
    )
    assert only('{"a": {"b": 1,\n"b": 2}}') == (
        {"a": {"b": 1}},
        ['2 $.a.b duplicate key "b", first on line 1'],
    )


def test_a_broken_document_does_not_hide_the_others() -> None:
    """Each document of a stream is read by itself. Numbers and lines are those of the file."""
    text = "# first\na: 1\n---\nb: [\n---\n\n---  # last\nc: 1\nc: 2\n"
    documents = read_documents(text, file="f")
    assert [(document.number, document.value) for document in documents] == [
        (1, {"a": 1}),
        (2, None),
        (3, None),
        (4, {"c": 1}),
    ]
    assert [finding.line for document in documents for finding in document.findings] == [5, 9]
    assert documents[3].line(("c",)) == 8


def test_json_streams() -> None:
    """Several JSON values in a row are several documents."""
    documents = read_documents('{"a": 1}\n{"b": 2}\n', file="f")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]
    assert documents[1].line(("b",)) == 2


def test_a_finding_prints_as_one_line() -> None:
    """It has file, line, severity, path and reason."""
    finding = Finding(file="a.yaml", document=1, line=3, path="$.spec", reason="is odd")
    assert str(finding) == "a.yaml:3: error: document 1: $.spec: is odd"
    assert (
        str(Finding(file="", document=1, line=None, path="$", reason="is odd"))
        == "error: document 1: $: is odd"
    )
