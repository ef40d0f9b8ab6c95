"""`report.csv`: the same lines with full precision, for a spreadsheet or a script."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from mempursuit_eval.report.tables import PaperTable


def sheet(tables: Sequence[PaperTable]) -> str:
    """Return all tables as one CSV, a line each, with a value and a change for every category."""
    categories = list(tables[0].counts)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "metric", "k", "system", "mempursuit", "source",
            *(name for c in categories for name in (c, f"{c} change")),
            "overall spread", "ci low", "ci high", "p", "left out",
        ]
    )  # fmt: skip
    for table in tables:
        for line in table.lines:
            low, high = line.interval or (None, None)
            cells: list[Any] = [
                table.metric,
                line.k,
                line.framework,
                line.arm,
                line.source or "this run",
            ]
            for c in categories:
                cells += [_plain(line.values.get(c)), _plain(line.changes.get(c))]
            cells += [_plain(line.spread), _plain(low), _plain(high), line.p, line.left_out]
            writer.writerow(cells)
    return out.getvalue()


def _plain(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
