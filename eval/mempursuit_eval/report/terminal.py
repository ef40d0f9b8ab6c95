"""The report in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from mempursuit_eval.report.grid import head, rows
from mempursuit_eval.report.tables import PaperTable

WIDE = 180  # columns enough for any table
FIRST = 3  # column of the first category


def show(console: Console, setting: Sequence[str], tables: Sequence[PaperTable]) -> None:
    """Print every table and what it says; a narrow terminal gets the overall figures alone."""
    for line in setting:
        console.print(line, highlight=False, markup=False)
    for table in tables:
        console.print()
        found = _table(table, 0)
        if Measurement.get(console, console.options.update(width=WIDE), found).maximum > (
            console.width
        ):
            found = _table(table, len(table.counts) - 1)
        console.print(found)
        for verdict in table.verdicts:
            console.print(verdict, highlight=False, markup=False)


def _table(table: PaperTable, dropped: int) -> Table:
    """Return the table without the first `dropped` categories."""
    found = Table(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    kept = [n for n in range(len(head(table))) if not FIRST <= n < FIRST + dropped]
    for n in kept:
        name = head(table)[n]
        # The count goes below the name, so that the figures set the width.
        found.add_column(
            name.replace(" (n", "\n(n"),
            justify="left" if n in (1, 2) else "right",
            no_wrap=True,
        )
    for _, system in groupby(rows(table, _bold), key=lambda row: row[:2]):
        for row in system:
            found.add_row(*(_keep_brackets(row[n]) for n in kept))
        found.add_section()
    return found


_MARKS = "\x00", "\x01"


def _bold(text: str) -> str:
    return f"{_MARKS[0]}{text}{_MARKS[1]}"


def _keep_brackets(cell: str) -> str:
    return escape(cell).replace(_MARKS[0], "[bold]").replace(_MARKS[1], "[/bold]")
