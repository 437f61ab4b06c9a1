"""Reading YAML and JSON: PyYAML's values with lines, and protection from harmful input."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.manifests.documents import Finding, read_documents


def only(text: str) -> tuple[Any, list[str]]:
    """Value and findings of a text with one document."""
    (document,) = read_documents(text, file="f.yaml")
    return document.value, [
        f"{finding.line} {finding.path} {finding.reason}" for finding in document.findings
    ]


# PyYAML's safe values, without dates and with what JSON can hold.
SCALARS: list[tuple[str, Any]] = [
    *((word, True) for word in ("yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")),
    *((word, False) for word in ("no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")),
    *((word, None) for word in ("", "~", "null", "Null", "NULL")),
    *(
        (word, word)
        for word in (
            "y",
            "oN",
            "inf",
            ".inf",
            "-.INF",
            ".nan",
            "=",
            "10%",
            "1e3",
            "0o17",
            "08",
            "1.0e+400",
        )
    ),
    *(
        (word, word)
        for word in ("2026-01-01", "2026-11-23T03:12:04Z", ".", "0x", "0x1p3", "!thing x")
    ),
    *((word, 15) for word in ("15", "+15", "017", "0xF", "0b1111", "1_5")),
    *((word, 15.0) for word in ("15.0", "15.", "1.5e+1")),
    (".5", 0.5),
    ("12:30", 750),
    ("99999999999999999999", 99999999999999999999),
    ("1" * 5000, "1" * 5000),
    ("1" + ":1" * 5000, "1" + ":1" * 5000),
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text[:20] for text, _ in SCALARS])
def test_an_unquoted_scalar_is_pyyamls(text: str, value: Any) -> None:
    """But it is a string where JSON has no such value: a date, an infinity."""
    found, findings = only(f"a: {text}")
    value = value.removeprefix("!thing ") if isinstance(value, str) else value
    assert (type(found["a"]), found["a"], findings) == (type(value), value, [])


TEXTS: list[tuple[str, Any]] = [
    ("a: 'on'", {"a": "on"}),
    ("a: !!str 5", {"a": "5"}),
    ("a: !!int '5'", {"a": 5}),
    ("a: !thing x", {"a": "x"}),
    ("on: 1\n1: 2\n1.5: 3", {"true": 1, "1": 2, "1.5": 3}),
    ("b: &x {c: 1, d: 1}\na: {<<: *x, d: 2}", {"b": {"c": 1, "d": 1}, "a": {"c": 1, "d": 2}}),
    ("b: &x {c: 1}\na: {c: 2, <<: *x}", {"b": {"c": 1}, "a": {"c": 2}}),
    (
        "b: &x {c: 1}\nd: &y {c: 2, e: 3}\na: {<<: [*x, *y]}",
        {"b": {"c": 1}, "d": {"c": 2, "e": 3}, "a": {"c": 1, "e": 3}},
    ),
    ("b: &x [{c: 1}]\na: {<<: *x}", {"b": [{"c": 1}], "a": {"c": 1}}),
    ("%YAML 1.1\n---\na: 1", {"a": 1}),
    ("# c\n\n---\na: 1\n...\n", {"a": 1}),
    ("\ufeffa: 1", {"a": 1}),
    ("a: |\n  ---\n  b\n", {"a": "---\nb\n"}),
    ("{a: b}", {"a": "b"}),
    ('{"a": [1, 2.0, true, null, "\\u00e9"], "b": {}}', {"a": [1, 2.0, True, None, "é"], "b": {}}),
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
def test_a_text_without_errors_is_read_as_json_or_yaml(text: str, value: Any) -> None:
    assert only(text) == (value, [])


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
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
    ("a: *x", "found undefined alias", 1),
    ("[" * 900, "nested deeper", 1),
    ("[" * 100_000, "nest", 1),  # the libyaml in PyYAML 6.0.4 refuses 1000 levels in its own words
    ("a: " + "{b: " * 300 + "}" * 300, "nested deeper", 1),
    ("\n- " * 1 + "- " * 5000 + "x", "nested deeper", 2),
    ("? [a]\n: 1", "a key must be a plain word", 1),
    ("~: 1", "a key must be a plain word", 1),
    ("a:\n  <<: 1", "takes a mapping", 2),
    ("b: &x [1]\na: {<<: *x}", "takes a mapping", 2),
    (MERGE_BOMB, "aliases make this more than", 1),
    ("a:\n  b: !!int x", '"x" cannot be read as int', 2),
    ("a: !!int ''", '"" cannot be read as int', 1),
    ("a: !!bool x", '"x" cannot be read as bool', 1),
    ("a: 1" + ":1" * 198 + ".5", "cannot be read as float", 1),
    ("a: &x 1\nb: &x 2", "found duplicate anchor", 2),
    ("a: 1\nb:\n  c: 1\n  c: 2\n", 'duplicate key "c"', 4),
    ("l:\n- {on: 1, yes: 2}", 'duplicate key "true"', 2),
    ('{"a": {"b": 1,\n"b": 2}}', 'duplicate key "b"', 2),
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


def test_a_broken_document_does_not_hide_the_others() -> None:
    """Each document of a stream is read by itself. Numbers and lines are those of the file."""
    text = "# first\na: 1\n---\nb: [\n---\n\n---  # last\nc: 1\n---\nd: 1\nd: 2\n"
    documents = read_documents(text, file="f")
    assert [(document.number, document.value) for document in documents] == [
        (1, {"a": 1}),
        (2, None),
        (3, None),
        (4, {"c": 1}),
        (5, None),
    ]
    assert [finding.line for document in documents for finding in document.findings] == [5, 11]
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
