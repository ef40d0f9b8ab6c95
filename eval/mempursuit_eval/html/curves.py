"""Coverage at every budget up to the widest: choices are nested, so one choice gives them all."""

from __future__ import annotations

from typing import Any

from mempursuit_eval.metrics import coverage
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.tables import SHOWN


def coverage_by_budget(run: SavedRun, framework: str) -> dict[str, Any]:
    """Return metric -> {"k": budgets, "arms": {arm: mean over questions with gold, 0-1}}.

    A framework that expands its picks is only known at the budgets that were run.
    """
    asked = [q for q in run.questions if q.gold_sessions]
    widest = run.budgets[-1]
    expands = any(
        c.ids != c.picks
        for (name, _, _), of in run.chosen.items()
        if name == framework
        for c in of.values()
    )
    budgets = list(run.budgets) if expands else list(range(1, widest + 1))
    found: dict[str, Any] = {metric: {"k": budgets, "arms": {}} for metric in SHOWN}
    for arm in run.arms if asked else ():
        sums = {metric: [0.0] * len(budgets) for metric in SHOWN}
        for q in asked:
            for n, k in enumerate(budgets):
                ids = (
                    run.chosen[framework, k, arm][q.id].ids
                    if expands
                    else run.chosen[framework, widest, arm][q.id].ids[:k]
                )
                got = coverage(q, ids, run.records)
                for metric in SHOWN:
                    sums[metric][n] += getattr(got, metric)
        for metric in SHOWN:
            found[metric]["arms"][arm] = [round(s / len(asked), 5) for s in sums[metric]]
    return found
