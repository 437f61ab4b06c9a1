"""Makes the table of docs/metrics.md from the program's own: `python docs/metrics_page.py` writes
it."""

from __future__ import annotations

from pathlib import Path

from eurekube_sync.cli.monitoring.metrics import METRICS

PAGE = Path(__file__).parent / "metrics.md"
_BEGIN, _END = "<!-- Made by `python docs/metrics_page.py` -->\n", "<!-- Until here -->\n"


def table() -> str:
    """A line a metric."""
    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for one in METRICS:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        rows.append(f"| `{one.name}` | {one.kind} | {labels} | {one.help} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """The page, with the table of now."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{head}{_BEGIN}\n{table()}\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
