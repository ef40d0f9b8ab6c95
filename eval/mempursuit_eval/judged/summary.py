"""From judgements to their part of `metrics.json`: rates, spread, tokens, paired tests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Any

from mempursuit_eval.judged.stages import Cell, Judgement
from mempursuit_eval.results import OVERALL
from mempursuit_eval.selectors import ORDER
from mempursuit_eval.statistics import compare_paired

Row = dict[str, Any]
Value = Callable[[Judgement], float | None]

METRICS: dict[str, Value] = {
    "accuracy": lambda j: j.score,
    "token_f1": lambda j: j.f1,
    "contains_gold": lambda j: None if j.contains is None else float(j.contains),
}


def summarise(judgements: Sequence[Judgement], categories: Sequence[str]) -> dict[str, list[Row]]:
    """Return {"judged_rows": …, "judged_paired": …}, one row a framework, budget, arm, category.

    Rates are in 0–1.
    A question whose score is not known (a failed call, a verdict that could not be read) is in no
    rate; a pair needs the score of both arms in the same repeat.
    """
    cells: dict[Cell, list[Judgement]] = defaultdict(list)
    for judgement in judgements:
        for cell in judgement.case.cells:
            cells[cell].append(judgement)
    found: dict[str, list[Row]] = {"judged_rows": [], "judged_paired": []}
    for cell in sorted(cells, key=lambda c: (c[0], c[1], c[2] != ORDER, c[2])):
        framework, k, arm = cell
        names = {"framework": framework, "k": k, "arm": arm}
        for category in (OVERALL, *categories):
            of = _within(cells[cell], category)
            if not of:
                continue
            found["judged_rows"].append({**names, "category": category, **_row(of)})
            if arm == ORDER:
                continue
            base = _within(cells[framework, k, ORDER], category)
            for metric, value in METRICS.items():
                if category == OVERALL or metric == "accuracy":
                    pair = _pair(base, of, value)
                    if pair:
                        where = {"category": category, "metric": metric}
                        found["judged_paired"].append({**names, **where, **pair})
    return found


def _within(judgements: Sequence[Judgement], category: str) -> list[Judgement]:
    return [j for j in judgements if category in (OVERALL, j.case.question.category)]


def _row(of: Sequence[Judgement]) -> Row:
    row: Row = {"questions": len({j.case.question.id for j in of})}
    for metric, value in METRICS.items():
        by_repeat = _by_repeat(of, value)
        row[metric] = fmean(by_repeat) if by_repeat else None
        row[f"{metric}_spread"] = stdev(by_repeat) if len(by_repeat) > 1 else None
        if metric == "accuracy":
            row["n"] = sum(value(j) is not None for j in of)
            row["accuracy_by_repeat"] = by_repeat
    return {**row, **_tokens(of, row["accuracy"]), **_oddities(of)}


def _by_repeat(of: Sequence[Judgement], value: Value) -> list[float]:
    """Return the mean of each repeat, those without any known value left out."""
    repeats: dict[int, list[float]] = defaultdict(list)
    for j in of:
        known = value(j)
        if known is not None:
            repeats[j.case.repeat].append(known)
    return [fmean(values) for _, values in sorted(repeats.items())]


def _tokens(of: Sequence[Judgement], accuracy: float | None) -> Row:
    """Return mean tokens an answer, and points of accuracy per 1,000 context tokens."""
    used = [j for j in of if j.usage is not None]
    if not used:
        return {}
    usages = [j.usage for j in used if j.usage is not None]
    context = fmean(j.context_tokens for j in used)
    return {
        "memories": fmean(len(j.case.ids) for j in used),
        "context_tokens": context,
        "prompt_tokens": fmean(u.prompt for u in usages),
        "completion_tokens": fmean(u.completion for u in usages),
        "verdict_tokens": fmean(j.verdict_tokens for j in used),
        "tokens_estimated": any(u.estimated for u in usages),
        "accuracy_per_1000_context_tokens": (
            accuracy / (context / 1000) if accuracy is not None and context else None
        ),
    }


def _oddities(of: Sequence[Judgement]) -> Row:
    status = Counter(j.status for j in of)
    return {
        "failed": status["failed"],
        "unparsed": dict(Counter(j.note for j in of if j.status == "unparsed")),
        "empty_answers": status["empty"],
        "unmarked_answers": sum(not j.marked for j in of if j.answer is not None),
        "cut_answers": sum(j.cut for j in of),
        "verdict_forms": dict(Counter(j.note for j in of if j.status == "judged")),
    }


def _pair(base: Sequence[Judgement], of: Sequence[Judgement], value: Value) -> Row | None:
    """Compare per question, over the repeats that both arms have a value in."""
    without = {(j.case.question.id, j.case.repeat): value(j) for j in base}
    both: dict[str, list[tuple[float, float]]] = defaultdict(list)
    questions = set()
    for j in of:
        question = j.case.question.id
        questions.add(question)
        a, b = without.get((question, j.case.repeat)), value(j)
        if a is not None and b is not None:
            both[question].append((a, b))
    if not both:
        return None
    found = compare_paired(
        [fmean(a for a, _ in pairs) for pairs in both.values()],
        [fmean(b for _, b in pairs) for pairs in both.values()],
    )
    return {
        "n": found.n,
        "left_out": len(questions) - len(both),
        "delta": found.delta,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "p_value": found.p_value,
        "gained": found.gained,
        "lost": found.lost,
    }
