r"""`report.tex`: tables for \input, with nothing but the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from mempursuit_eval.report.grid import NOTES, head, notes, rows
from mempursuit_eval.report.tables import PaperTable

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "→": r"$\rightarrow$", "–": "--", "§": r"\S{}", "<": r"$<$", ">": r"$>$",
    "Δ": r"$\Delta$", "λ": r"$\lambda$", "θ": r"$\theta$", "≤": r"$\leq$", "−": "$-$",
}  # fmt: skip
_MINUS = re.compile(r"(?<![\w.)])-(?=\d)")  # a sign, no hyphen
_BOLD = "\x00", "\x01"  # stand in for the command while the text around it is escaped


def latex(setting: Sequence[str], tables: Sequence[PaperTable]) -> str:
    """Return the tables as LaTeX."""
    lines = ["% Needs \\usepackage{booktabs}.", *(f"% {line}" for line in setting)]
    for n, table in enumerate(tables):
        caption = " ".join([f"{table.title}.", *([] if n else [NOTES]), *notes(table)])
        columns = head(table)
        lines += [
            "",
            r"\begin{table*}[t]",
            r"\centering\small",
            r"\begin{tabular}{rll" + "r" * (len(columns) - 3) + "}",
            r"\toprule",
            _row(columns),
        ]
        for _, system in groupby(rows(table, _bold), key=lambda row: row[:2]):
            lines += [r"\midrule", *(_row(row) for row in system)]
        lines += [
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{tab:mempursuit-{table.metric.replace('_', '-')}}}",
            r"\end{table*}",
        ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return `text` with LaTeX's special characters escaped."""
    escaped = "".join(_SPECIAL.get(character, character) for character in text)
    escaped = _MINUS.sub("$-$", escaped)
    return escaped.replace(_BOLD[0], r"\textbf{").replace(_BOLD[1], "}")


def _bold(text: str) -> str:
    return f"{_BOLD[0]}{text}{_BOLD[1]}"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(escape(cell) for cell in cells) + r" \\"
