"""Makes docs/eurekasyncer.md and docs/eurekaimport.md from the CRDs: `python docs/reference.py`.

Each field's description in the CRD says what it means, its default and an example; type and bounds
are the schema's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eurekube_sync.manifests.crd import KIND, load_crd
from eurekube_sync.model.imports import IMPORT

PAGES = {kind: Path(__file__).parent / f"{kind.lower()}.md" for kind in (KIND, IMPORT)}
Schema = Mapping[str, Any]

_HEAD = """\
# {kind}

<!-- Made from crds/{file} by `python docs/reference.py`: change it there. -->

{description} API version `{group}/{version}`, short name {short_names}.

{examples}

{defaults} Most strings also have a pattern: see
[crds/{file}](../crds/{file}). `eurekube-sync validate FILES` checks manifests against all rules.
It reads YAML as PyYAML does. A few values without quotes differ for kubectl: `y` and `n` are booleans there, `1e3`,
`0o17` and `08` are numbers, and `12:30` is a string. Quotes make each of them a string everywhere.
"""


_EXAMPLES = {
    KIND: """\
[tests/cases/fields.yaml](../tests/cases/fields.yaml) has tested examples of each field, [examples](examples/) has whole
files.""",
    IMPORT: "[Imports](imports.md) says how to use it.",
}
_DEFAULTS = {
    KIND: "The schema has a default only for `spec.mode`; the program sets the others.",
    IMPORT: "The schema has no defaults; the program sets them.",
}


def page(kind: str) -> str:
    """The whole page of a kind."""
    crd = load_crd(kind)["spec"]
    (version,) = crd["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    head = _HEAD.format(
        kind=kind,
        file=f"{kind.lower()}.yaml",
        examples=_EXAMPLES[kind],
        defaults=_DEFAULTS[kind],
        description=schema["description"],
        group=crd["group"],
        version=version["name"],
        short_names=", ".join(f"`{name}`" for name in crd["names"]["shortNames"]),
    )
    parts = [head, "## spec\n", *_rules_of_all(schema)]
    parts += _section("spec", schema["properties"]["spec"])
    parts += ["## status\n", *_status(schema["properties"]["status"])]
    return "\n".join(parts)


def _rules_of_all(schema: Schema) -> Iterator[str]:
    """The rules that the whole object has, such as on its name."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- {' '.join(rule['message'].split())}"
    if schema.get("x-kubernetes-validations"):
        yield ""


def _section(path: str, schema: Schema) -> Iterator[str]:
    if path == "spec" or path.endswith("[]"):  # of another, the row above says it
        yield f"{_described(schema)[0]}\n"
    yield from _rules(path, schema)
    yield "| field | value | meaning | default | example |\n|---|---|---|---|---|"
    deeper: list[tuple[str, Schema]] = []
    required = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        meaning, default, example = _described(field)
        needed = "required" if name in required else default
        yield _row(f"`{name}`", _value(field), meaning, needed, example)
        inner = field.get("items", field)
        if inner.get("properties"):
            deeper.append((f"{path}.{name}{'[]' if 'items' in field else ''}", inner))
    yield ""
    for name, field in deeper:
        yield f"### {name}\n"
        yield from _section(name, field)


def _status(schema: Schema) -> Iterator[str]:
    yield f"{schema['description']}\n"
    yield "| field | type | meaning |\n|---|---|---|"
    for name, field in schema["properties"].items():
        meaning, _, example = _described(field)
        yield _row(
            f"`{name}`", _type(field), f"{meaning} Such as {example}." if example else meaning
        )
    yield ""


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _described(field: Schema) -> tuple[str, str, str]:
    """Meaning, default and example, as the description gives them."""
    text = " ".join(str(field.get("description", "")).split())
    text, _, example = text.partition(" Example: ")
    meaning, _, default = text.partition(" Default: ")
    return meaning, default.removesuffix("."), example.removesuffix(".")


def _value(field: Schema) -> str:
    """Type and bounds; the values alone, if they are listed. Of several types, each with its own
    bounds."""
    if kinds := _kinds(field):
        each = [
            f"{kind} ({_bounds({key: field[key] for key in keys if key in field})})"
            for kind, keys in kinds
        ]
        return f"{', '.join(each[:-1])} or {each[-1]}"
    bounds = _bounds(field)
    return bounds if "enum" in field else ", ".join(part for part in (_type(field), bounds) if part)


def _kinds(field: Schema) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The types of a field that has several, and which bounds of the schema are theirs."""
    number, text, fields = (
        ("integer", ("minimum", "maximum")),
        ("string", ("minLength", "maxLength")),
        ("object", ("minProperties", "maxProperties")),
    )
    if field.get("x-kubernetes-int-or-string"):
        return number, text
    return () if "type" in field else (number, text, fields)


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = field.get("type", "integer, string or object")
    if kind == "array":
        return f"list of {_type(field['items'])}s"
    if "additionalProperties" in field:
        return f"map of {_type(field['additionalProperties'])}s"
    return str(kind)


def _bounds(field: Schema) -> str:
    """What the schema allows, in words; of what a list or a map holds, too."""
    found: list[str] = []
    if "enum" in field:
        found.append(" or ".join(f"`{value}`" for value in field["enum"]))
    least, most = field.get("minimum"), field.get("maximum")
    if most is not None:
        found.append(f"{least}..{most}")
    elif least is not None:
        found.append(f"at least {least}")
    for one, many, low, high in (
        ("character", "characters", "minLength", "maxLength"),
        ("entry", "entries", "minItems", "maxItems"),
        ("entry", "entries", "minProperties", "maxProperties"),
    ):
        if field.get(high):
            of = one if field[high] == 1 else many
            found.append(
                f"{field[low]}..{field[high]} {of}"
                if low in field
                else f"at most {field[high]} {of}"
            )
    values = field.get("additionalProperties") or (
        field["items"] if _is_plain_list(field) else None
    )
    if values and (inner := _bounds(values)):
        found.append(f"each {inner}")
    return "; ".join(found)


def _is_plain_list(field: Schema) -> bool:
    return field.get("type") == "array" and "properties" not in field["items"]


def _rules(path: str, schema: Schema) -> Iterator[str]:
    messages = [
        f"- {' '.join(rule['message'].split())}"
        for rule in schema.get("x-kubernetes-validations", ())
    ]
    for name, field in schema["properties"].items():
        inner = field.get("items", field)
        if not inner.get("properties"):
            rules = field.get("x-kubernetes-validations", ())
            messages += [f"- `{name}`: {' '.join(rule['message'].split())}" for rule in rules]
    if messages:
        yield "\n".join(dict.fromkeys(messages)) + "\n"


def main() -> None:
    """Writes the pages."""
    for kind, path in PAGES.items():
        path.write_text(page(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
