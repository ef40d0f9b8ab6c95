"""From choices to `metrics.json`: rates, paired differences, overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mempursuit_eval.metrics import METRICS, Coverage, coverage, overlap
from mempursuit_eval.run import RunResult
from mempursuit_eval.selectors import ORDER
from mempursuit_eval.statistics import compare_paired

OVERALL = "overall"

Row = dict[str, Any]


@dataclass(frozen=True)
class Metrics:
    """The content of `metrics.json`; all rates in 0–1."""

    rows: list[Row]
    paired: list[Row]
    overlap: list[Row]

    def as_dict(self) -> dict[str, list[Row]]:
        """Return the JSON object."""
        return {"rows": self.rows, "paired": self.paired, "overlap": self.overlap}

    def row(self, framework: str, k: int, arm: str, category: str = OVERALL) -> Row:
        """Return one row of rates."""
        return next(
            r
            for r in self.rows
            if (r["framework"], r["k"], r["arm"], r["category"]) == (framework, k, arm, category)
        )

    def pair(self, framework: str, k: int, arm: str, metric: str) -> Row:
        """Return one paired difference against the framework's own order."""
        return next(
            r
            for r in self.paired
            if (r["framework"], r["k"], r["arm"], r["metric"]) == (framework, k, arm, metric)
        )


def compute_metrics(result: RunResult) -> Metrics:
    """Score every choice and pair every arm with the framework's own order."""
    questions = {q.id: q for q in result.dataset.questions}
    scored: dict[tuple[str, int, str], dict[str, Coverage]] = defaultdict(dict)
    picks: dict[tuple[str, int, str], dict[str, tuple[str, ...]]] = defaultdict(dict)
    for c in result.chosen:
        cell = (c.framework, c.k, c.arm)
        scored[cell][c.question] = coverage(questions[c.question], c.ids, result.records)
        picks[cell][c.question] = c.picks
    metrics = Metrics([], [], [])
    for (framework, k, arm), of in scored.items():
        for category in (OVERALL, *result.dataset.categories):
            chosen = [v for q, v in of.items() if category in (OVERALL, questions[q].category)]
            metrics.rows.append(
                {
                    "framework": framework,
                    "backbone": result.kinds[framework],
                    "k": k,
                    "arm": arm,
                    "category": category,
                    **_rates(chosen),
                }
            )
        if arm == ORDER:
            continue
        cell, base = (framework, k, arm), (framework, k, ORDER)
        metrics.paired.extend(_pairs(*cell, scored[base], of))
        shared = [overlap(picks[base][q], picks[cell][q], k) for q in of]
        metrics.overlap.append(
            {"framework": framework, "k": k, "arm": arm, "overlap": sum(shared) / len(shared)}
        )
    return metrics


def _rates(scores: list[Coverage]) -> Row:
    values = {m: [v for s in scores if (v := getattr(s, m)) is not None] for m in METRICS}
    return {
        "n": len(values["session_recall"]),
        **{m: sum(v) / len(v) if v else None for m, v in values.items()},
    }


def scores_of_both(
    metric: str, without: Mapping[str, Coverage], with_: Mapping[str, Coverage]
) -> list[tuple[float, float]]:
    """Return (without, with) of every question in `without` that has gold for `metric`."""
    return [
        (a, getattr(with_[q], metric))
        for q, score in without.items()
        if (a := getattr(score, metric)) is not None
    ]


def _pairs(
    framework: str, k: int, arm: str, without: dict[str, Coverage], with_: dict[str, Coverage]
) -> list[Row]:
    rows = []
    for metric in METRICS:
        both = scores_of_both(metric, without, with_)
        if not both:
            continue
        found = compare_paired(*zip(*both, strict=True))
        rows.append(
            {
                "framework": framework,
                "k": k,
                "arm": arm,
                "metric": metric,
                "n": found.n,
                "delta": found.delta,
                "ci_low": found.ci_low,
                "ci_high": found.ci_high,
                "p_value": found.p_value,
                "gained": found.gained,
                "lost": found.lost,
            }
        )
    return rows
