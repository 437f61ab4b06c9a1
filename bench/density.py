"""`python -m bench.density`: how dense the code is, as syntax trees without imports, docstrings and
annotations.

A code line is one on which a syntax node begins. A branch is an `if`, a loop, a ternary, an
`except`, a `case`, a `with`, an `assert`, each `for` and `if` of a comprehension, and each further
operand of `and` or `or`.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).parents[1] / "eurekube_sync"
_MANY_BRANCHES = 15

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Documented = ast.Module | ast.ClassDef | _Function
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Folded = _Comprehension | ast.IfExp
_Branch = (
    ast.If
    | ast.For
    | ast.AsyncFor
    | ast.While
    | ast.IfExp
    | ast.ExceptHandler
    | ast.match_case
    | ast.With
    | ast.AsyncWith
    | ast.Assert
    | ast.comprehension
)


class Plain(ast.NodeTransformer):
    """Takes imports, docstrings and annotations out of a tree."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, _Documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        if isinstance(node, _Function):
            node.returns = None
        return super().generic_visit(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Density:
    """What was counted in all files together."""

    nodes: int
    lines: int
    comprehensions: int
    ternaries: int
    nested: int
    branching: tuple[tuple[int, str], ...]  # branches and name of each function with too many
    loops_over_one: int
    comment_lines: int
    all_lines: int


def measure(paths: list[Path]) -> Density:
    """Count the files' nodes, folds and branches."""
    nodes = lines = comprehensions = ternaries = nested = loops_over_one = comment_lines = (
        all_lines
    ) = 0
    branching: list[tuple[int, str]] = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        text_lines = text.splitlines()
        all_lines += len(text_lines)
        comment_lines += sum(line.lstrip().startswith("#") for line in text_lines)
        tree = Plain().visit(ast.parse(text))
        walked = list(ast.walk(tree))
        nodes += len(walked)
        lines += len({node.lineno for node in walked if isinstance(node, ast.expr | ast.stmt)})
        comprehensions += sum(isinstance(node, _Comprehension) for node in walked)
        ternaries += sum(isinstance(node, ast.IfExp) for node in walked)
        nested += sum(_holds_a_fold(node) for node in walked if isinstance(node, _Folded))
        loops_over_one += sum(_loops_over_one(node) for node in walked)
        for function in walked:
            if (
                isinstance(function, _Function)
                and (branches := _branches(function)) > _MANY_BRANCHES
            ):
                branching.append((branches, f"{_shown(path)}:{function.name}"))
    return Density(
        nodes=nodes,
        lines=lines,
        comprehensions=comprehensions,
        ternaries=ternaries,
        nested=nested,
        branching=tuple(sorted(branching, reverse=True)),
        loops_over_one=loops_over_one,
        comment_lines=comment_lines,
        all_lines=all_lines,
    )


def _holds_a_fold(fold: ast.AST) -> bool:
    return any(isinstance(node, _Folded) for node in ast.walk(fold) if node is not fold)


def _loops_over_one(node: ast.AST) -> bool:
    if not isinstance(node, ast.For | ast.comprehension):
        return False
    return any(isinstance(name, ast.Name) and name.id == "one" for name in ast.walk(node.target))


def _branches(function: ast.AST) -> int:
    found = 0
    for node in ast.walk(function):
        if isinstance(node, _Branch):
            found += 1
        if isinstance(node, ast.comprehension):
            found += len(node.ifs)
        if isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
    return found


def _shown(path: Path) -> Path:
    """Return the path from the package's folder, or as it is if it is elsewhere."""
    if path.is_relative_to(_PACKAGE.parent):
        return path.relative_to(_PACKAGE.parent)
    return path


def rows(density: Density) -> Iterator[str]:
    """Yield a row for each figure, with its goal."""
    per_hundred = 100 / density.lines
    yield f"syntax nodes                      {density.nodes:9,}   goal: at most 130,000"
    yield (
        f"nodes a code line                 {density.nodes / density.lines:9.1f}   goal: at most 7"
    )
    yield (
        f"comprehensions a 100 code lines   {density.comprehensions * per_hundred:9.1f}   goal: "
        "at most 2.5"
    )
    yield (
        f"ternaries a 100 code lines        {density.ternaries * per_hundred:9.1f}   goal: at "
        "most 2"
    )
    yield f"folds that hold another one       {density.nested:9,}   goal: at most 10"
    yield (
        f"functions with over {_MANY_BRANCHES} branches   {len(density.branching):9,}   goal: "
        "at most 10"
    )
    yield f"loops over a variable `one`       {density.loops_over_one:9,}   goal: 0"
    share = 100 * density.comment_lines / density.all_lines
    yield f"comment lines                     {share:8.1f}%   the models: 6 to 12%"


def main() -> None:
    """Print the figures of the package, or of the given files and folders."""
    parser = argparse.ArgumentParser(prog="python -m bench.density", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[_PACKAGE], help="files or folders")
    parser.add_argument(
        "--functions", action="store_true", help="list the functions with many branches"
    )
    options = parser.parse_args()
    files: list[Path] = []
    for path in options.paths:
        files += sorted(path.resolve().rglob("*.py")) if path.is_dir() else [path.resolve()]
    density = measure(files)
    if not density.lines:
        parser.error("no code in these files")
    print("\n".join(rows(density)))
    if options.functions:
        for branches, name in density.branching:
            print(f"{branches:4}  {name}")


if __name__ == "__main__":
    main()
