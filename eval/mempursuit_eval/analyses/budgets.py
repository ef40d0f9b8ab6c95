"""Coverage and, when judged, accuracy over K, with the adaptive stop's star (paper Fig. 4b)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mempursuit_adapters import choose
from mempursuit_core import PRESETS, AdaptiveStop
from mempursuit_eval.analyses.figures import GAIN, NATIVE, panels
from mempursuit_eval.analyses.reading import coverage_by_arm, means
from mempursuit_eval.html.answers import accuracy_curves, has_verdicts
from mempursuit_eval.metrics import coverage
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER, make_selector
from mempursuit_eval.tables import SHOWN

TITLES = {
    "session_recall": "Session recall %",
    "complete_coverage": "Complete coverage %",
    "accuracy": "Accuracy %",
}


def measure(run: SavedRun, framework: str, arm: str, widest: int = 50) -> dict[str, Any]:
    """Return the curves up to `widest`, and where pursuit stops by itself (Eq. 7).

    What counts are the chosen memories; a framework that expands its picks reaches more with them.
    """
    budgets = list(range(1, widest + 1))
    arms = [make_selector(ORDER), make_selector(arm)]
    rates = coverage_by_arm(run, framework, arms, budgets)
    curves: dict[str, Any] = {
        metric: {"k": budgets, "arms": {a.name: means(rates[a.name][metric]) for a in arms}}
        for metric in SHOWN
    }
    if has_verdicts(run):
        curves["accuracy"] = accuracy_curves(run, framework)
    found = {
        "analysis": "budgets",
        "setting": f"{run.setting}; framework: {framework}; arm: {arm}",
        "framework": framework,
        "arm": arm,
        "curves": curves,
    }
    if arm in PRESETS:
        found["adaptive"] = _adaptive(run, framework, arm, widest)
    return found


def _adaptive(run: SavedRun, framework: str, arm: str, cap: int) -> dict[str, Any]:
    stop = AdaptiveStop()
    dials = replace(PRESETS[arm], stop=stop)
    sizes, rates = [], []
    for question, pool in run.pools(framework):
        if question.gold_sessions:
            ids = choose(pool, cap, dials).ids
            sizes.append(len(ids))
            found = coverage(question, map(str, ids), run.records)
            rates.append([getattr(found, metric) for metric in SHOWN])
    return {
        "tolerance": stop.tolerance,
        "patience": stop.patience,
        "cap": cap,
        "memories_mean": round(float(np.mean(sizes)), 2),
        "memories_median": float(np.median(sizes)),
        "stopped_before_the_cap": round(float(np.mean(np.array(sizes) < cap)), 4),
        **{m: round(float(v), 5) for m, v in zip(SHOWN, np.mean(rates, axis=0), strict=True)},
    }


def draw(found: dict[str, Any]) -> Figure:
    """Return the curves, the framework's order dashed, with a star where pursuit stops."""
    figure, axes = panels(len(found["curves"]), width=3.6)
    for axis, (metric, curve) in zip(axes, found["curves"].items(), strict=True):
        for arm, values in curve["arms"].items():
            if arm not in (ORDER, found["arm"]):
                continue
            own = arm == ORDER
            axis.plot(
                curve["k"],
                [100 * v for v in values],
                label="framework's order" if own else arm,
                marker="" if len(curve["k"]) > 5 else "o",
                color=NATIVE if own else GAIN,
                linestyle="--" if own else "-",
            )
        star = found.get("adaptive", {})
        if metric in star:
            axis.plot(
                star["memories_mean"], 100 * star[metric], "*", markersize=13, color="#E69F00",
                markeredgecolor="black",
                label=f"adaptive stop, {star['memories_mean']:.1f} on average",
            )  # fmt: skip
        axis.set(title=TITLES[metric], xlabel="K")
        axis.grid(axis="y", alpha=0.3)
    axes[0].legend(loc="lower right")
    return figure
