"""The paper's Table 4 layout as data: one table a metric, one line a framework, K and arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mempursuit_eval.report.published import (
    ACCURACY,
    COVERAGE,
    Published,
    comparable,
    differences,
)
from mempursuit_eval.results import OVERALL
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER
from mempursuit_eval.tables import NAMES

Row = dict[str, Any]

WITHOUT = "w/o"
COVERAGE_TITLES = {"session_recall": "Session recall %", "complete_coverage": "Complete coverage %"}


@dataclass(frozen=True)
class Line:
    """One line of a table; all figures in percent or points.

    Attributes:
        arm: "w/o", or "w/ ARM".
        values: by category.
        changes: against the line without, by category; empty for "w/o".
        spread: standard deviation of `values["overall"]` over repeats, if there are any.
        interval: 95 % paired bootstrap interval of the overall change.
        p: exact McNemar (or sign) test of the overall change.
        left_out: questions without a known value in both arms.
        source: "" for this run, else where in the paper.
    """

    framework: str
    k: int
    arm: str
    values: Mapping[str, float | None]
    changes: Mapping[str, float | None] = field(default_factory=dict)
    spread: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    left_out: int = 0
    source: str = ""


@dataclass(frozen=True)
class PaperTable:
    """One metric in the layout of the paper's Table 4.

    Attributes:
        title: the metric, with its unit.
        counts: category -> questions, in the order shown, overall last.
        lines: by K, then framework; the one without first, the paper's last.
        notes: what a reader must know.
    """

    title: str
    metric: str
    counts: Mapping[str, int]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def verdicts(self) -> list[str]:
        """A sentence a framework and arm: helps, hurts or no difference shown, by the interval."""
        said: dict[str, list[str]] = {}
        for line in self.lines:
            if line.interval is None or line.source:
                continue
            change, (low, high) = line.changes[OVERALL], line.interval
            finding = "helps" if low > 0 else "hurts" if high < 0 else "no difference shown"
            name = f"{line.framework} {line.arm}"
            said.setdefault(name, []).append(
                f"K = {line.k} {finding} ({change:+.2f} [{low:+.2f}, {high:+.2f}])"
            )
        return [f"{name}: {'; '.join(parts)}" for name, parts in said.items()]


def framework_name(run: SavedRun, framework: str) -> str:
    """Return how tables call a framework, saying so where a port stands in."""
    port = " (port)" if run.manifest["frameworks"][framework]["backbone"] == "port" else ""
    return NAMES.get(framework, framework) + port


def is_judged(run: SavedRun) -> bool:
    """Return whether the run was answered, and its figures belong to this manifest."""
    return "judged" in run.manifest


def accuracy_table(run: SavedRun) -> PaperTable | None:
    """Return the accuracy table of a judged run, or None."""
    if not is_judged(run) or run.manifest["judged"]["judge"] is None:
        return None
    rubrics = run.manifest["judged"]["scores"] == "rubrics"
    return _table(
        run,
        "Mean rubric score %" if rubrics else "Accuracy %",
        "accuracy",
        run.metrics["judged_rows"],
        run.metrics["judged_paired"],
        ACCURACY,
        judged=True,
    )


def coverage_tables(run: SavedRun) -> list[PaperTable]:
    """Return the tables of the gold evidence that reaches the context."""
    return [
        _table(
            run, title, metric, run.metrics["rows"], run.metrics["paired"], COVERAGE[metric],
            judged=False,
        )
        for metric, title in COVERAGE_TITLES.items()
    ]  # fmt: skip


def _table(
    run: SavedRun,
    title: str,
    metric: str,
    rows: list[Row],
    paired: list[Row],
    published: Mapping[tuple[str, int], Published],
    *,
    judged: bool,
) -> PaperTable:
    figures = _Figures(metric, (*run.categories, OVERALL), rows, paired)
    lines: list[Line] = []
    shown: dict[str, None] = {}
    for k in run.budgets:
        for framework in run.frameworks:
            label = framework_name(run, framework)
            lines += [
                figures.line(label, framework, k, arm)
                for arm in run.arms
                if figures.has(framework, k, arm)
            ]
            paper = published.get((framework, k))
            if paper is not None and comparable(run.manifest):
                lines += _paper_lines(label, k, paper)
                shown[framework] = None
    notes = []
    for framework in shown:
        different = differences(run.manifest, framework, judged=judged)
        setting = "; ".join(different) if different else "the same in what a run records"
        notes.append(f"{NAMES[framework]}, setting against the paper's: {setting}.")
    return PaperTable(title, metric, figures.counts(), tuple(lines), tuple(notes))


class _Figures:
    """One metric's rates and paired differences by framework, budget, arm and category."""

    def __init__(
        self, metric: str, categories: Sequence[str], rows: list[Row], paired: list[Row]
    ) -> None:
        self._metric = metric
        self._categories = categories
        self._rows = {(r["framework"], r["k"], r["arm"], r["category"]): r for r in rows}
        self._pairs = {
            (p["framework"], p["k"], p["arm"], p.get("category", OVERALL)): p
            for p in paired
            if p["metric"] == metric
        }

    def has(self, framework: str, k: int, arm: str) -> bool:
        return (framework, k, arm, OVERALL) in self._rows

    def counts(self) -> dict[str, int]:
        """Return how many questions each category has."""
        found = dict.fromkeys(self._categories, 0)
        for (_, _, _, category), row in self._rows.items():
            n = row["questions"] if "questions" in row else row["n"]
            found[category] = max(found.get(category, 0), n)
        return found

    def line(self, label: str, framework: str, k: int, arm: str) -> Line:
        values = {c: self._value(framework, k, arm, c) for c in self._categories}
        spread = _percent(self._rows[framework, k, arm, OVERALL].get(f"{self._metric}_spread"))
        if arm == ORDER:
            return Line(label, k, WITHOUT, values, spread=spread)
        changes = {c: self._change(framework, k, arm, c) for c in self._categories}
        pair = self._pairs.get((framework, k, arm, OVERALL))
        if pair is None:
            return Line(label, k, f"w/ {arm}", values, changes, spread)
        interval = (100 * pair["ci_low"], 100 * pair["ci_high"])
        return Line(
            label, k, f"w/ {arm}", values, changes, spread, interval, pair["p_value"],
            pair.get("left_out", 0),
        )  # fmt: skip

    def _value(self, framework: str, k: int, arm: str, category: str) -> float | None:
        return _percent(self._rows.get((framework, k, arm, category), {}).get(self._metric))

    def _change(self, framework: str, k: int, arm: str, category: str) -> float | None:
        pair = self._pairs.get((framework, k, arm, category))
        if pair is not None:  # it knows which questions one arm lacks a value for
            return float(100 * pair["delta"])
        without = self._value(framework, k, ORDER, category)
        with_ = self._value(framework, k, arm, category)
        return None if without is None or with_ is None else with_ - without


def _paper_lines(label: str, k: int, paper: Published) -> list[Line]:
    changes = {
        c: round(value - paper.without[c], 2)
        for c, value in paper.with_.items()
        if c in paper.without
    }
    found = [Line(label, k, WITHOUT, paper.without, source=paper.source)] if paper.without else []
    return [*found, Line(label, k, "w/ paper", paper.with_, changes, source=paper.source)]


def _percent(rate: float | None) -> float | None:
    return None if rate is None else 100 * rate
