"""Encoder robustness: the same pools, other embeddings for the choice (paper Table 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from mempursuit_adapters import Pool
from mempursuit_eval.analyses.figures import NATIVE, SERIES, panels
from mempursuit_eval.analyses.reading import coverage_by_arm, means
from mempursuit_eval.encoders import MemoEncoder, make_encoder
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER, Selector, make_selector
from mempursuit_eval.statistics import compare_paired
from mempursuit_eval.tables import SHOWN

STORED = "stored"  # the vectors the pools came with


class _Reembedded:
    """An arm that sees the same memories through another encoder."""

    def __init__(self, arm: Selector, encoder: MemoEncoder) -> None:
        self.name = encoder.name
        self._arm = arm
        self._encoder = encoder

    def pick(self, pool: Pool, k: int, question: str) -> Sequence[int]:
        query = self._encoder.encode([question])[0]
        vectors = self._encoder.encode(list(pool.texts))
        return self._arm.pick(replace(pool, query=query, vectors=vectors), k, question)


def measure(run: SavedRun, framework: str, arm: str, embedders: Sequence[str]) -> dict[str, Any]:
    """Return coverage of `arm` at the run's budgets by encoder; pools and native order stay.

    Raises:
        ValueError, EncoderUnavailableError: an encoder is unknown or not installed.
    """
    chooser = make_selector(arm)
    arms: list[Selector] = [make_selector(ORDER), chooser]
    for name in embedders:
        encoder = MemoEncoder(make_encoder(name))
        encoder.encode([r.text for r in run.records.values()])  # in one batch, not pool by pool
        arms.append(_Reembedded(chooser, encoder))

    def with_texts(pool: Pool) -> Pool:
        return replace(pool, texts=[run.records[str(i)].text for i in pool.ids])

    rates = coverage_by_arm(run, framework, arms, run.budgets, with_texts)
    rows = []
    for name in (a.name for a in arms):
        for metric in SHOWN:
            for n, k in enumerate(run.budgets):
                pair = compare_paired(rates[ORDER][metric][:, n], rates[name][metric][:, n])
                rows.append(
                    {"encoder": STORED if name == arm else name, "metric": metric, "k": k,
                     "rate": means(rates[name][metric])[n], "delta": pair.delta,
                     "ci_low": pair.ci_low, "ci_high": pair.ci_high}
                )  # fmt: skip
    return {
        "analysis": "encoders",
        "setting": f"{run.setting}; framework: {framework}; arm: {arm}",
        "framework": framework,
        "arm": arm,
        "budgets": list(run.budgets),
        "rows": rows,
    }


def draw(found: dict[str, Any]) -> Figure:
    """Return the change in complete coverage by encoder and budget, with intervals."""
    figure, (axis,) = panels(1, width=6.0)
    rows = [r for r in found["rows"] if r["metric"] == "complete_coverage"]
    names = [n for n in dict.fromkeys(r["encoder"] for r in rows) if n != ORDER]
    for n, name in enumerate(names):
        of = [r for r in rows if r["encoder"] == name]
        shift = (n - (len(names) - 1) / 2) * 0.12
        places = [i + shift for i in range(len(of))]
        deltas = [100 * r["delta"] for r in of]
        ends = [
            [100 * (r["delta"] - r["ci_low"]) for r in of],
            [100 * (r["ci_high"] - r["delta"]) for r in of],
        ]
        axis.errorbar(
            places, deltas, yerr=ends, fmt="os^Dv"[n % 5], color=SERIES[n % len(SERIES)],
            capsize=3, label=name,
        )  # fmt: skip
    axis.axhline(0, color=NATIVE, linestyle="--")
    axis.set_xticks(range(len(found["budgets"])), [f"K = {k}" for k in found["budgets"]])
    axis.set_title("Change in complete coverage, points, same pools")
    axis.legend(fontsize=7)
    return figure
