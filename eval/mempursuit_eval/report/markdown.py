"""`report.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mempursuit_eval.report.grid import NOTES, head, notes, rows
from mempursuit_eval.report.side import SideTable
from mempursuit_eval.report.tables import PaperTable


def markdown(
    setting: Sequence[str], tables: Sequence[PaperTable], beside: Sequence[SideTable]
) -> str:
    """Return the whole report as Markdown."""
    lines = ["# Without and with MemPursuit", *_paragraphs([*setting, NOTES])]
    for table in tables:
        lines += ["", f"## {table.title}", ""]
        lines += [f"- {verdict}" for verdict in table.verdicts]
        lines += ["", *_table(head(table), rows(table, _bold)), *_paragraphs(notes(table))]
    for side in beside:
        lines += ["", f"## {side.title}", "", *_table(side.head, side.rows)]
        lines += _paragraphs(side.notes)
    return "\n".join(lines) + "\n"


def _bold(text: str) -> str:
    return f"**{text}**"


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in ("", text)]


def _table(names: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    return [_row(names), "|" + "---|" * len(names), *(_row(row) for row in cells)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
