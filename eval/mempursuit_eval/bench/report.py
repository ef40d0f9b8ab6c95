"""What a benchmark prints and writes."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from mempursuit_eval.tables import markdown_table


@dataclass(frozen=True)
class Column:
    """A column of a table: the rows' key, its heading, and how numbers are shown."""

    key: str
    heading: str
    form: str = ""  # a format specification such as ".2f"; texts are shown as they are

    def shown(self, row: Mapping[str, Any]) -> str:
        """Return the row's cell as text; empty where the row has none."""
        value = row.get(self.key)
        if value is None:
            return ""
        return value if isinstance(value, str) else format(value, self.form)


@dataclass(frozen=True)
class Table:
    """Rows of figures; JSON keeps them in full, texts show them by `columns`."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Report:
    """One benchmark's outcome.

    Attributes:
        name: stem of its files.
        title: heading.
        setting: what it was measured on, by name.
        tables: the figures.
        notes: what a reader must know to read them, a sentence or two each.
    """

    name: str
    title: str
    setting: Mapping[str, Any]
    tables: Sequence[Table]
    notes: Sequence[str] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "benchmark": self.name,
            "setting": dict(self.setting),
            "tables": [{"title": t.title, "rows": [dict(r) for r in t.rows]} for t in self.tables],
            "notes": list(self.notes),
        }

    def markdown(self) -> str:
        """Return the report as a Markdown page."""
        lines = [f"# {self.title}", ""]
        lines += [f"- {name}: {_plain(value)}" for name, value in self.setting.items()]
        for table in self.tables:
            head = [column.heading for column in table.columns]
            rows = ([column.shown(row) for column in table.columns] for row in table.rows)
            lines += ["", f"## {table.title}", "", *markdown_table(head, rows)]
        if self.notes:
            lines += ["", *(f"{note}\n" for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write `<name>.json` and `<name>.md` into `folder` and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            "json": json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n",
            "md": self.markdown(),
        }
        paths = [folder / f"{self.name}.{form}" for form in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        return paths

    def show(self, console: Console) -> None:
        """Print the report."""
        console.print(self.title, style="bold", markup=False)
        for name, value in self.setting.items():
            console.print(f"{name}: {_plain(value)}", markup=False, highlight=False)
        for table in self.tables:
            console.print(_terminal(table))
        for note in self.notes:
            console.print(note, markup=False, highlight=False)


def machine() -> dict[str, Any]:
    """Return what figures depend on besides the benchmark: processor, load, versions."""
    return {
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "load before": _load(),
        "versions": {
            "mempursuit": version("mempursuit"),
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "numba": version("numba"),
        },
    }


def _load() -> str:
    """Return the mean number of running processes of the last minute; figures hang on it."""
    try:
        return f"{os.getloadavg()[0]:.1f}"
    except (AttributeError, OSError):  # not on this platform
        return "unknown"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _terminal(table: Table) -> RichTable:
    shown = RichTable(
        title=table.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    for column in table.columns:
        shown.add_column(column.heading, justify="right" if column.form else "left")
    for row in table.rows:
        shown.add_row(*(column.shown(row) for column in table.columns))
    return shown


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(v)}" for name, v in value.items())
    return str(value)
