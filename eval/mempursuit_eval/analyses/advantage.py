"""Residual advantage of gold evidence at matched size (paper Eq. 28, Fig. 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mempursuit_eval.analyses.distribution import draw_differences, summarise
from mempursuit_eval.analyses.reading import gold_positions, judged_pools, residual
from mempursuit_eval.saved import SavedRun


def measure(run: SavedRun, framework: str) -> dict[str, Any]:
    """Return Δ_q = R(B_q|q) − R(G_q|q) for every question with gold evidence in its pool.

    G_q: the pool's memories that rest on a gold turn. B_q: the framework's own top |G_q|.
    """
    differences, sizes, left_out = [], [], 0
    for judged in judged_pools(run, framework):
        gold = gold_positions(run, judged)
        if not gold:
            left_out += 1
            continue
        own = residual(judged, range(len(gold)))
        differences.append(own - residual(judged, gold))
        sizes.append(len(gold))
    return {
        "analysis": "advantage",
        "setting": f"{run.setting}; framework: {framework}",
        "framework": framework,
        "questions_without_gold_in_the_pool": left_out,
        "gold_memories_mean": round(float(np.mean(sizes)), 3) if sizes else None,
        **summarise(differences),
    }


def draw(found: dict[str, Any]) -> Figure:
    """Return the histogram of Δ_q."""
    return draw_differences(
        found["differences"],
        "Residual advantage of gold evidence",
        "Δ = ‖r(framework's top K)‖ − ‖r(gold)‖, K = number of gold memories",
        ("gold evidence fits closer", "framework's top K fits closer"),
    )
