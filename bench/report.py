"""What a run found, for people: a table on the terminal, a page's tables, a plot of cost against
size."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.goals import goal
from bench.row import PROGRAM, SCENARIOS, Load, Row

BEGIN, END = "<!-- python -m bench -->", "<!-- end -->"
"""Between these lines the page has what the last run wrote."""
_COLUMNS = (
    "instances",
    "scenario",
    "program",
    "wall s",
    "all there s",
    "cpu s",
    "peak MB",
    "Eureka",
    "Kubernetes",
    "other client ms: median, 99 %",
    "goal",
)
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 360, 70, 50
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

Found = Mapping[int, Sequence[Row]]
"""By the number of instances."""


def machine() -> str:
    """Processor, cores, kernel and Python, in a line."""
    models = [
        line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")
    ]
    return (
        f"{len(models)} cores of {models[0] if models else platform.machine()}, "
        f"{platform.system()}, Python "
        f"{platform.python_version()}"
    )


def _cpuinfo() -> list[str]:
    file = Path("/proc/cpuinfo")
    return file.read_text().splitlines() if file.exists() else []


def cells(size: int, row: Row) -> tuple[str, ...]:
    """One line of the table."""
    if row.failed:
        return (f"{size:,}", row.scenario, row.program, *[""] * 7, goal(size, row))
    return (
        f"{size:,}",
        row.scenario,
        row.program,
        f"{row.wall:.2f}",
        "" if row.there is None else f"{row.there:.2f}",
        f"{row.cpu:.2f}",
        f"{row.memory:.0f}",
        _load(row.eureka),
        _load(row.kubernetes),
        _waits(row),
        goal(size, row),
    )


def _waits(row: Row) -> str:
    if row.stranger_ms is None:
        return ""
    idle = f" (alone {row.idle_ms[0]:.1f}, {row.idle_ms[1]:.1f})" if row.idle_ms else ""
    return f"{row.stranger_ms[0]:.1f}, {row.stranger_ms[1]:.1f}{idle}"


def _load(load: Load | None) -> str:
    """`calls · MB · processor seconds of the server`, as far as they are known."""
    if load is None:
        return ""
    counted = [] if load.requests is None else [f"{load.requests:,}", f"{load.megabytes:.1f} MB"]
    return " · ".join([*counted, f"{load.cpu:.2f} s"])


def show(found: Found) -> None:
    """On the terminal."""
    table = Table(title=machine())
    for name in _COLUMNS:
        table.add_column(
            name, justify="left" if name in ("scenario", "program", "goal") else "right"
        )
    for size, rows in found.items():
        for row in rows:
            table.add_row(*cells(size, row))
        table.add_section()
    Console(width=200).print(table)


def as_json(found: Found) -> str:
    """All figures."""
    rows = {str(size): [asdict(row) for row in of] for size, of in found.items()}
    return json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n"


def with_earlier(found: Found, file: Path) -> Found:
    """With the rows of the sizes that an earlier run on this machine wrote into this file; sorted
    by size."""
    if not file.exists():
        return found
    earlier = msgspec.json.decode(file.read_bytes(), type=_Recorded)
    kept = (
        {int(size): rows for size, rows in earlier.rows.items()}
        if earlier.machine == machine()
        else {}
    )
    return dict(sorted({**kept, **found}.items()))


class _Recorded(msgspec.Struct):
    machine: str
    rows: dict[str, list[Row]]


def into_page(page: Path, found: Found, plot: str) -> None:
    """Replaces what the run before wrote there. `plot` is the name of the picture beside the
    page."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    table = [f"| {' | '.join(_COLUMNS)} |", f"|{'|'.join('---' for _ in _COLUMNS)}|"]
    table += [f"| {' | '.join(cells(size, row))} |" for size, rows in found.items() for row in rows]
    told = [f"On {machine()}:", "", *table, "", f"![Cost against size]({plot})"]
    page.write_text(before + "\n".join([BEGIN, "", *told, "", END]) + after)


def svg(found: Found) -> str:
    """The program's processor time an instance, by scenario and size; what costs its share does not
    rise."""
    sizes = sorted(found)
    lines: dict[str, list[tuple[int, float]]] = {}
    for size in sizes:
        for row in found[size]:
            if row.program == PROGRAM and not row.failed:
                lines.setdefault(row.scenario, []).append((size, 1e6 * row.cpu / size))
    highest = max((value for points in lines.values() for _, value in points), default=1.0)

    def at(size: int, value: float) -> str:
        x = _LEFT + (_WIDTH - _LEFT - 20) * sizes.index(size) / max(1, len(sizes) - 1)
        return f"{x:.1f},{_HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - 30) * value / highest:.1f}"

    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 210} {_HEIGHT}" font-family="sans-serif" '
            'font-size="12">',
            f'<rect width="{_WIDTH + 210}" height="{_HEIGHT}" fill="white"/>',
            f'<text x="{_LEFT}" y="18">processor time of eurekube-sync, microseconds an instance</text>',
            *_axes(sizes, highest, at),
            *_drawn(lines, at),
            "</svg>",
            "",
        ]
    )


def _axes(sizes: Sequence[int], highest: float, at: object) -> Iterator[str]:
    assert callable(at)
    for part in range(5):
        value = highest * part / 4
        _, y = at(sizes[0], value).split(",")
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH - 20}" y2="{y}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end" dominant-baseline="middle">{value:,.0f}</text>'
    for size in sizes:
        x, _ = at(size, 0).split(",")
        yield f'<text x="{x}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{size:,}</text>'
    yield f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">instances</text>'


def _drawn(lines: Mapping[str, Sequence[tuple[int, float]]], at: object) -> Iterator[str]:
    assert callable(at)
    for number, scenario in enumerate(name for name in SCENARIOS if name in lines):
        colour, y = _COLOURS[number], 40 + 20 * number
        points = " ".join(at(size, value) for size, value in lines[scenario])
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield f'<line x1="{_WIDTH}" y1="{y - 4}" x2="{_WIDTH + 20}" y2="{y - 4}" stroke="{colour}" stroke-width="2"/>'
        yield f'<text x="{_WIDTH + 26}" y="{y}">{scenario}</text>'
