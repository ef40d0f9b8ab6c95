"""Paired differences category by category."""

from __future__ import annotations

from itertools import product
from typing import Any

from mempursuit_eval.metrics import METRICS, coverage
from mempursuit_eval.results import scores_of_both
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER
from mempursuit_eval.statistics import compare_paired


def paired_by_category(run: SavedRun) -> list[dict[str, Any]]:
    """Return paired differences for every framework, budget, arm, metric and category."""
    rows = []
    for framework, k in product(run.frameworks, run.budgets):
        scored = {
            arm: {
                q.id: coverage(q, run.chosen[framework, k, arm][q.id].ids, run.records)
                for q in run.questions
                if q.gold_sessions
            }
            for arm in run.arms
        }
        for arm, metric, category in product(run.arms, METRICS, run.categories):
            if arm == ORDER:
                continue
            asked = {
                q.id: scored[ORDER][q.id]
                for q in run.questions
                if q.category == category and q.id in scored[ORDER]
            }
            pairs = scores_of_both(metric, asked, scored[arm])
            if not pairs:
                continue
            without, with_ = zip(*pairs, strict=True)
            found = compare_paired(without, with_)
            rows.append(
                {
                    "framework": framework,
                    "k": k,
                    "arm": arm,
                    "metric": metric,
                    "category": category,
                    "n": found.n,
                    "without": sum(without) / found.n,
                    "delta": found.delta,
                    "ci_low": found.ci_low,
                    "ci_high": found.ci_high,
                }
            )
    return rows
