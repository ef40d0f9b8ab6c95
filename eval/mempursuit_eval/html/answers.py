"""Judged answers, where the run has them."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import Any

from mempursuit_eval.results import OVERALL
from mempursuit_eval.saved import SavedRun, json_lines

ACCURACY = "accuracy"


def has_verdicts(run: SavedRun) -> bool:
    """Say whether answers of this run were judged."""
    judged = run.manifest.get("judged")
    return bool(judged and judged.get("judge")) and (run.folder / "judged.jsonl").exists()


def answers(run: SavedRun) -> dict[str, dict[str, list[Any]]]:
    """Return framework -> "K arm" -> [score or null, answer or null], or null, a question.

    The score (0-1) is the mean over repeats with a known verdict, the answer that of the first.
    """
    place = {q.id: n for n, q in enumerate(run.questions)}
    scores: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    found: dict[str, dict[str, list[Any]]] = {f: {} for f in run.frameworks}
    for row in json_lines(run.folder / "judged.jsonl"):
        framework, cell, n = row["framework"], f"{row['k']} {row['arm']}", place[row["question"]]
        of = found[framework].setdefault(cell, [None] * len(run.questions))
        if of[n] is None:
            of[n] = [None, row["answer"]]
        if row["score"] is not None:
            scores[framework, cell, n].append(row["score"])
            of[n][0] = round(fmean(scores[framework, cell, n]), 3)
    return found


def accuracy_rows(run: SavedRun, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the overall `rows` with the accuracy of their framework, budget and arm."""
    by_cell = {_cell(r): r for r in run.metrics["judged_rows"] if r["category"] == OVERALL}
    return [{**r, ACCURACY: by_cell.get(_cell(r), {}).get(ACCURACY)} for r in rows]


def accuracy_pairs(run: SavedRun) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the paired differences in accuracy overall, and by category."""
    of = {(*_cell(r), r["category"]): r for r in run.metrics["judged_rows"]}
    pairs = [r for r in run.metrics["judged_paired"] if r["metric"] == ACCURACY]
    overall = [r for r in pairs if r["category"] == OVERALL]
    by_category = [
        {**r, "without": of[r["framework"], r["k"], "order", r["category"]][ACCURACY]}
        for r in pairs
        if r["category"] != OVERALL
    ]
    return overall, by_category


def accuracy_curves(run: SavedRun, framework: str) -> dict[str, Any]:
    """Return {"k": budgets, arm: accuracy at each}, like the coverage curves."""
    by_cell = {_cell(r): r for r in run.metrics["judged_rows"] if r["category"] == OVERALL}
    curves = {
        arm: [by_cell.get((framework, k, arm), {}).get(ACCURACY) for k in run.budgets]
        for arm in run.arms
    }
    known = {arm: values for arm, values in curves.items() if None not in values}
    return {"k": list(run.budgets), "arms": known}


def _cell(row: dict[str, Any]) -> tuple[str, int, str]:
    return row["framework"], row["k"], row["arm"]
