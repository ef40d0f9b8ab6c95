"""What every arm read for every question, with the pursuit's own evidence for each pick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from mempursuit_adapters import Choice, Pool, choose
from mempursuit_core import PRESETS, Dials
from mempursuit_eval.html.memories import MemoryTable
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER

# Numbers of the small plots: what can be seen, and no more.
DECIMALS = 3


def framework_reads(run: SavedRun, framework: str, memories: MemoryTable) -> dict[str, Any]:
    """Return the picks of every arm at the widest budget, question by question.

    `order` is the framework's own top K, `residual` the ‖r‖ it leaves at each budget. Every other
    arm has its `picks`, their native `ranks` (0-based) and, for pursuit, `scores`, `residuals` ‖r‖
    and certificates `gaps`, one a pick (None where a memory without a vector kept its place).
    """
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


def expanded_contexts(run: SavedRun, framework: str, memories: MemoryTable) -> dict[str, Any]:
    """Return "K arm" -> memories that reached the model, where those are not the picks."""
    return {
        f"{k} {arm}": [
            [memories[m] for m in run.chosen[framework, k, arm][q.id].ids] for q in run.questions
        ]
        for k, arm in product(run.budgets, run.arms)
        if any(c.ids != c.picks for c in run.chosen[framework, k, arm].values())
    }


def _round(value: float | None) -> float | None:
    return None if value is None else round(float(value), DECIMALS)
