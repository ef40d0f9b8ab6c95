"""Pursuit against MMR at every weight of relevance (paper Table 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from mempursuit_eval.analyses.figures import GAIN, NATIVE, SERIES, THIRD, panels
from mempursuit_eval.analyses.reading import coverage_by_arm, means
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER, PURSUITS, make_selector
from mempursuit_eval.statistics import compare_paired
from mempursuit_eval.tables import SHOWN

WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def measure(run: SavedRun, framework: str, weights: Sequence[float] = WEIGHTS) -> dict[str, Any]:
    """Return the coverage of order, pursuit and MMR by λ at the run's budgets.

    `best_mmr` is the λ with the highest coverage on these very questions, so it flatters MMR;
    `pursuit_minus_best_mmr` compares every preset with it, in points of 0–1.
    """
    names = [ORDER, *PURSUITS, *(f"mmr:{w:g}" for w in weights)]
    rates = coverage_by_arm(run, framework, [make_selector(n) for n in names], run.budgets)
    found: dict[str, Any] = {
        "analysis": "mmr",
        "setting": f"{run.setting}; framework: {framework}",
        "framework": framework,
        "budgets": list(run.budgets),
        "weights": list(weights),
        "arms": {name: {m: means(rates[name][m]) for m in SHOWN} for name in names},
        "best_mmr": {},
        "pursuit_minus_best_mmr": [],
    }
    for metric in SHOWN:
        for n, k in enumerate(run.budgets):
            best = max(names[1 + len(PURSUITS) :], key=lambda a: rates[a][metric][:, n].mean())
            found["best_mmr"][f"{metric} K={k}"] = best
            for arm in PURSUITS:
                pair = compare_paired(rates[best][metric][:, n], rates[arm][metric][:, n])
                found["pursuit_minus_best_mmr"].append(
                    {"metric": metric, "k": k, "arm": arm, "best_mmr": best, "delta": pair.delta,
                     "ci_low": pair.ci_low, "ci_high": pair.ci_high, "p_value": pair.p_value}
                )  # fmt: skip
    return found


def draw(found: dict[str, Any]) -> Figure:
    """Return complete coverage over λ, one panel a budget, with the other arms as lines."""
    figure, axes = panels(len(found["budgets"]), width=3.0)
    weights = found["weights"]
    styles = {
        ORDER: (NATIVE, "--", "framework's order"),
        "paper": (GAIN, "-", "paper"),
        "auto": (THIRD, "-.", "auto"),
    }
    for n, (axis, k) in enumerate(zip(axes, found["budgets"], strict=True)):
        values = [100 * found["arms"][f"mmr:{w:g}"]["complete_coverage"][n] for w in weights]
        axis.plot(weights, values, "o-", color=SERIES[2], markersize=4, label="MMR")
        for arm, (colour, line, label) in styles.items():
            level = 100 * found["arms"][arm]["complete_coverage"][n]
            axis.axhline(level, color=colour, linestyle=line, label=label)
        axis.set(title=f"Complete coverage %, K = {k}", xlabel="λ (weight of relevance)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure
