"""Rerank latency of pursuit, and of cross-encoders by batch size (paper Tables 12, 13, Fig. 9)."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mempursuit_adapters import Pool
from mempursuit_core import warmup
from mempursuit_eval.analyses.figures import GAIN, SERIES, panels
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import Selector, make_selector

VECTOR_ARMS = ("paper", "auto", "mmr:0.5", "dpp:0.5")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def measure(
    run: SavedRun,
    framework: str,
    k: int,
    questions: int,
    models: Sequence[str] = (),
    batches: Sequence[int] = (1, 8, 32, 128, 200),
) -> dict[str, Any]:
    """Time the choice of `k` memories from the real pools of `questions` questions, spread evenly.

    Raises:
        SelectorUnavailableError: a cross-encoder in `models` is not installed or cannot be loaded.
    """
    pools = [
        (question.text, replace(pool, texts=[run.records[str(i)].text for i in pool.ids]))
        for question, pool in run.pools(framework)
    ]
    step = max(1, len(pools) // questions)
    pools = pools[::step][:questions]
    warmup()
    rows: list[dict[str, Any]] = [
        {"arm": name, **_time(make_selector(name), pools, k)} for name in VECTOR_ARMS
    ]
    if models:
        from mempursuit_eval.selectors.cross_encoder import CrossEncoderReranker

        for model in models:
            for batch in batches:
                arm = CrossEncoderReranker(f"ce:{model}", model, batch)
                rows.append({"arm": arm.name, "batch": batch, **_time(arm, pools, k)})
    base = rows[0]["median_ms"]
    for row in rows:
        row["median_speedup_of_pursuit"] = round(row["median_ms"] / base, 2)
    return {
        "analysis": "latency",
        "setting": (
            f"{run.setting}; framework: {framework}; K = {k}; {len(pools)} questions, pools of "
            f"{int(np.median([len(p) for _, p in pools]))} (median); one question at a time"
        ),
        "framework": framework,
        "k": k,
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "threads": {name: os.environ.get(name, "default") for name in THREADS},
        },
        "rows": rows,
    }


def _time(arm: Selector, pools: Sequence[tuple[str, Pool]], k: int) -> dict[str, float]:
    took = []
    if pools:
        arm.pick(pools[0][1], k, pools[0][0])  # loading and compiling are not latency
    for question, pool in pools:
        began = time.perf_counter()
        arm.pick(pool, k, question)
        took.append(1000 * (time.perf_counter() - began))
    return {
        "mean_ms": round(float(np.mean(took)), 3),
        "median_ms": round(float(np.median(took)), 3),
        "p95_ms": round(float(np.percentile(took, 95)), 3),
    }


def draw(found: dict[str, Any]) -> Figure:
    """Return medians: bars for the vector arms, lines over batch size for cross-encoders."""
    rows = found["rows"]
    models = list(dict.fromkeys(r["arm"] for r in rows if "batch" in r))
    figure, axes = panels(2 if models else 1, width=4.6)
    fast = [r for r in rows if "batch" not in r]
    axes[0].barh(range(len(fast)), [r["median_ms"] for r in fast], color=GAIN, height=0.6)
    axes[0].plot([r["p95_ms"] for r in fast], range(len(fast)), "|", color="black", label="P95")
    axes[0].set_yticks(range(len(fast)), [r["arm"] for r in fast])
    axes[0].invert_yaxis()
    axes[0].set(title=f"Median ms a choice, K = {found['k']}")
    axes[0].legend()
    if models:
        for n, model in enumerate(models):
            of = [r for r in rows if r["arm"] == model]
            axes[1].plot(
                [r["batch"] for r in of], [r["median_ms"] for r in of], "os^Dv"[n % 5] + "-",
                color=SERIES[(n + 1) % len(SERIES)], label=model,
            )  # fmt: skip
        axes[1].axhline(fast[0]["median_ms"], color=GAIN, linestyle="--", label="pursuit (paper)")
        axes[1].set_xscale("log", base=2)
        axes[1].set_yscale("log")
        axes[1].set(title="Median ms by batch size", xlabel="pairs a forward pass")
        axes[1].legend(fontsize=7)
    return figure
