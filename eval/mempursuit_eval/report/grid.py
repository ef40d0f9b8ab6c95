"""Tables as rows of text, the same for Markdown, LaTeX and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mempursuit_eval.report.tables import Line, PaperTable
from mempursuit_eval.results import OVERALL

Bold = Callable[[str], str]

# Under the first table, for all of them.
NOTES = (
    "w/o: the framework's own top K. w/: the arm's K out of the same pool; in brackets the change "
    "in points. The interval is a 95 % paired bootstrap over questions, p an exact McNemar test "
    "(a sign test where values lie between 0 and 1), both of the overall change. The highest "
    "of a framework and K is bold."
)
SPREAD_NOTE = "±: standard deviation over repeats."


def head(table: PaperTable) -> list[str]:
    """Return the column names, with the number of questions."""
    counted = [f"{name[:1].upper()}{name[1:]} (n = {n:,})" for name, n in table.counts.items()]
    return ["K", "System", "MemPursuit", *counted, "95 % CI", "p"]


def rows(table: PaperTable, bold: Bold) -> Iterator[list[str]]:
    """Yield one row of text a line; `bold` marks the highest figure of a framework and K."""
    for line in table.lines:
        rivals = [
            other
            for other in table.lines
            if (other.framework, other.k, bool(other.source))
            == (line.framework, line.k, bool(line.source))
        ]
        arm = f"{line.arm} (published, {line.source})" if line.source else line.arm
        yield [
            str(line.k),
            line.framework,
            arm,
            *(_cell(line, category, rivals, bold) for category in table.counts),
            _interval(line),
            p_value(line.p),
        ]


def notes(table: PaperTable) -> list[str]:
    """Return what stands under a table, besides NOTES."""
    found = []
    if any(line.spread is not None for line in table.lines):
        found.append(SPREAD_NOTE)
    left_out = max((line.left_out for line in table.lines), default=0)
    if left_out:
        found.append(
            f"Up to {left_out} questions a line are in no pair, because a call failed or a verdict "
            "could not be read."
        )
    return [*found, *table.notes]


def p_value(p: float | None) -> str:
    """Return a p-value as tables print it."""
    if p is None:
        return ""
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _cell(line: Line, category: str, rivals: list[Line], bold: Bold) -> str:
    value = line.values.get(category)
    if value is None:
        return "–"
    others = [v for other in rivals if (v := other.values.get(category)) is not None]
    text = f"{value:.2f}"
    if len(others) > 1 and value == max(others) and min(others) < value:
        text = bold(text)
    if category == OVERALL and line.spread is not None:
        text += f" ± {line.spread:.2f}"
    change = line.changes.get(category)
    return text if change is None else f"{text} ({change:+.2f})"


def _interval(line: Line) -> str:
    if line.interval is None:
        return ""
    low, high = line.interval
    return f"[{low:+.2f}, {high:+.2f}]"
