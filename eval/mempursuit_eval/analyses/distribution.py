"""Differences question by question: their summary and their histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mempursuit_eval.analyses.figures import GAIN, LOSS, panels
from mempursuit_eval.statistics import compare_paired

DECIMALS = 5


def summarise(differences: Sequence[float]) -> dict[str, Any]:
    """Return count, mean with its 95 % bootstrap interval, median and shares by sign."""
    values = np.asarray(differences, dtype=float)
    if not values.size:
        return {"questions": 0, "differences": []}
    found = compare_paired(np.zeros_like(values), values)
    return {
        "questions": found.n,
        "mean": round(found.delta, DECIMALS),
        "ci_low": round(found.ci_low, DECIMALS),
        "ci_high": round(found.ci_high, DECIMALS),
        "median": round(float(np.median(values)), DECIMALS),
        "positive": round(found.gained / found.n, DECIMALS),
        "negative": round(found.lost / found.n, DECIMALS),
        "sign_test_p": found.p_value,
        "differences": [round(float(v), DECIMALS) for v in values],
    }


def draw_differences(
    differences: Sequence[float], title: str, axis_title: str, sides: tuple[str, str]
) -> Figure:
    """Return a histogram split at zero; `sides` names what positive and negative mean."""
    values = np.asarray(differences, dtype=float)
    figure, (axis,) = panels(1, width=5.2)
    edge = max(0.01, float(np.abs(values).max())) if values.size else 1.0
    bins = np.linspace(-edge, edge, 49).tolist()  # an edge lies at zero
    for kept, colour, name, hatch in (
        (values > 0, GAIN, sides[0], ""),
        (values < 0, LOSS, sides[1], "///"),
    ):
        share = 100 * kept.mean() if values.size else 0.0
        axis.hist(
            values[kept], bins=bins, color=colour, hatch=hatch, edgecolor="white", linewidth=0.4,
            label=f"{name}: {share:.0f} %",
        )  # fmt: skip
    axis.axvline(0, color="black", linestyle="--", linewidth=1)
    axis.set(title=f"{title} (n = {values.size:,})", xlabel=axis_title, ylabel="questions")
    figure.legend(loc="outside upper left", ncols=2, fontsize=8)
    return figure
