"""What the HTML report carries: figures, texts once, and every choice as small integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from mempursuit_adapters import Choice, Pool, choose
from mempursuit_core import PRESETS, Dials
from mempursuit_eval.datasets import Question
from mempursuit_eval.html.curves import coverage_by_budget
from mempursuit_eval.metrics import coverage
from mempursuit_eval.results import OVERALL
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER
from mempursuit_eval.statistics import compare_paired
from mempursuit_eval.tables import NAMES

METRICS = {
    "complete_coverage": "Complete session coverage",
    "session_recall": "Session recall",
    "turn_complete": "Complete turn coverage",
    "turn_recall": "Turn recall",
}
# Numbers of the small plots: what can be seen, and no more.
DECIMALS = 3


def build_payload(run: SavedRun) -> dict[str, Any]:
    """Return the report's data as a JSON object.

    Memories are listed once, those no context and no gold evidence needs are left out; everywhere
    else a memory is its index in that list, a question its index in `questions`, and a missing
    value null. `reads[framework]` holds, question by question: `order`, the framework's own top K;
    `residual`, the ‖r‖ it leaves at each budget; and for every other arm its `picks`, their native
    `ranks` (0-based) and, for pursuit, `scores`, `residuals` ‖r‖ and certificates `gaps`, one a
    pick (null where a memory without a vector kept its place). `contexts` says what reached the model
    where that is not the picks themselves.
    """
    memories = _Memories(run)
    reads = {f: _reads(run, f, memories) for f in run.frameworks}
    contexts = {f: c for f in run.frameworks if (c := _contexts(run, f, memories))}
    return {
        "setting": run.setting,
        "written": run.manifest["written"],
        "frameworks": [
            {"name": f, "label": NAMES.get(f, f), "kind": run.manifest["frameworks"][f]["backbone"]}
            for f in run.frameworks
        ],
        "arms": run.arms,
        "pursuits": [arm for arm in run.arms if arm in PRESETS],
        "budgets": run.budgets,
        "categories": run.categories,
        "metrics": METRICS,
        "rows": [r for r in run.metrics["rows"] if r["category"] == OVERALL],
        "paired": run.metrics["paired"],
        "overlap": run.metrics["overlap"],
        "by_category": _by_category(run),
        "curves": {f: coverage_by_budget(run, f) for f in run.frameworks},
        "questions": [
            {
                "id": q.id,
                "text": q.text,
                "answer": q.answer,
                "category": run.categories.index(q.category),
                "sessions": sorted(q.gold_sessions),
                "turns": sorted(q.gold_turns),
                "evidence": memories.gold(run.conversation_of[q.id], q),
            }
            for q in run.questions
        ],
        "reads": reads,
        "contexts": contexts,
        "memories": memories.rows,
    }


class _Memories:
    """Numbers memories in the order they are first needed."""

    def __init__(self, run: SavedRun) -> None:
        self._run = run
        self._index: dict[str, int] = {}
        self._by_turn: dict[tuple[str, str], list[str]] = {}
        # A record's id starts with its conversation's: turn ids repeat between conversations.
        for record in run.records.values():
            for turn in record.evidence:
                key = (record.id.rpartition("/")[0], turn)
                self._by_turn.setdefault(key, []).append(record.id)
        self.rows: list[list[Any]] = []

    def __getitem__(self, memory: str) -> int:
        if memory not in self._index:
            r = self._run.records[memory]
            self._index[memory] = len(self.rows)
            self.rows.append(
                [r.text, r.session, r.when.isoformat(timespec="minutes"), r.speaker, r.evidence]
            )
        return self._index[memory]

    def gold(self, conversation: str, question: Question) -> list[int]:
        """Return the memories that rest on the question's gold turns."""
        found = {
            m for turn in question.gold_turns for m in self._by_turn.get((conversation, turn), ())
        }
        return sorted(self[m] for m in found)


def _reads(run: SavedRun, framework: str, memories: _Memories) -> dict[str, Any]:
    widest = run.budgets[-1]
    others = [arm for arm in run.arms if arm != ORDER]
    reads: dict[str, Any] = {ORDER: [], "residual": []}
    reads |= {arm: {"picks": [], "ranks": []} for arm in others}
    for arm in others:
        if arm in PRESETS:
            reads[arm] |= {"scores": [], "residuals": [], "gaps": []}
    for question, pool in run.pools(framework):
        native = run.chosen[framework, widest, ORDER][question.id].picks
        reads[ORDER].append([memories[m] for m in native])
        reads["residual"].append([_residual(pool, k) for k in run.budgets])
        rank = {str(m): n for n, m in reversed(list(enumerate(pool.ids)))}
        for arm in others:
            picks = run.chosen[framework, widest, arm][question.id].picks
            reads[arm]["picks"].append([memories[m] for m in picks])
            reads[arm]["ranks"].append([rank.get(m) for m in picks])
            if arm in PRESETS:
                trace = _trace(choose(pool, widest, PRESETS[arm]), picks)
                for name, values in trace.items():
                    reads[arm][name].append(values)
    return reads


def _trace(choice: Choice, picks: Sequence[str]) -> dict[str, list[float | None]]:
    """Return scores, residuals and certificates; empty where the saved picks are not these."""
    if tuple(map(str, choice.ids)) != tuple(picks):
        return {"scores": [], "residuals": [], "gaps": []}
    trace: dict[str, list[float | None]] = {"scores": [], "residuals": [], "gaps": []}
    found = choice.selection
    step = 0
    for score in choice.scores:
        residual = gap = None
        if score is not None and found is not None:  # held places have no refit of their own
            residual, gap = _round(found.residual_norms[step]), float(f"{found.gaps[step]:.2g}")
            step += 1
        trace["scores"].append(_round(score))
        trace["residuals"].append(residual)
        trace["gaps"].append(gap)
    return trace


def _residual(pool: Pool, k: int) -> float | None:
    """Return ‖r‖ of the framework's own top `k`, refitted as pursuit refits."""
    top = replace(pool, ids=pool.ids[:k], vectors=pool.vectors[:k], texts=())
    found = choose(top, k, Dials()).selection if len(top) else None
    return None if found is None or not len(found) else _round(found.residual_norms[-1])


def _contexts(run: SavedRun, framework: str, memories: _Memories) -> dict[str, Any]:
    """Return "K arm" -> memories that reached the model, where those are not the picks."""
    return {
        f"{k} {arm}": [
            [memories[m] for m in run.chosen[framework, k, arm][q.id].ids] for q in run.questions
        ]
        for k, arm in product(run.budgets, run.arms)
        if any(c.ids != c.picks for c in run.chosen[framework, k, arm].values())
    }


def _by_category(run: SavedRun) -> list[dict[str, Any]]:
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
            pairs = [
                (before, getattr(scored[arm][q.id], metric))
                for q in run.questions
                if q.category == category
                and q.id in scored[ORDER]
                and (before := getattr(scored[ORDER][q.id], metric)) is not None
            ]
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


def _round(value: float | None) -> float | None:
    return None if value is None else round(float(value), DECIMALS)
