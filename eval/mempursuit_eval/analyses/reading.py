"""Reading a run's pools again, by any arm and at any budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters import Pool
from mempursuit_adapters.triage import first_places, triage
from mempursuit_core import select
from mempursuit_core.inputs import unit, unit_rows
from mempursuit_eval.datasets import Question
from mempursuit_eval.metrics import coverage
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import Selector
from mempursuit_eval.tables import SHOWN

Progress = Callable[[int, int], None]  # done, total


@dataclass(frozen=True)
class Judged:
    """One question with the part of its pool that has usable vectors.

    Attributes:
        question: the question.
        ids: (J,) memory ids in native order.
        query: (d,) unit query embedding.
        vectors: (J, d) unit embeddings.
    """

    question: Question
    ids: tuple[str, ...]
    query: NDArray[np.floating[Any]]
    vectors: NDArray[np.floating[Any]]


def judged_pools(run: SavedRun, framework: str) -> Iterator[Judged]:
    """Yield every question that has gold evidence and a pool to judge, in file order."""
    for question, pool in run.pools(framework):
        found = triage(pool, first_places(pool.ids))
        if question.gold_sessions and found.query is not None and found.rows:
            yield Judged(
                question,
                tuple(str(pool.ids[i]) for i in found.judged),
                unit(found.query, "query"),
                unit_rows(np.stack(found.rows), "candidates"),
            )


def residual(judged: Judged, positions: Sequence[int]) -> float:
    """Return R(S|q) = ‖r(q, S)‖ of the set `positions`, with the simplex refit of Eq. 6.

    Selecting as many memories as the set has selects all of it; the last refit is the set's own.
    """
    subset = judged.vectors[list(positions)]
    return float(select(judged.query, subset, len(positions)).residual_norms[-1])


def gold_positions(run: SavedRun, judged: Judged) -> list[int]:
    """Return the places of memories that rest on a gold turn."""
    gold = judged.question.gold_turns
    return [n for n, m in enumerate(judged.ids) if gold.intersection(run.records[m].evidence)]


def coverage_by_arm(
    run: SavedRun,
    framework: str,
    arms: Sequence[Selector],
    budgets: Sequence[int],
    pools: Callable[[Pool], Pool] | None = None,
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return arm -> metric -> (n, len(budgets)) rates in 0–1 over questions with gold evidence.

    The arms choose again from the saved pools, changed by `pools` if given.
    """
    rates: dict[str, dict[str, list[list[float]]]] = {
        arm.name: {metric: [] for metric in SHOWN} for arm in arms
    }
    for question, pool in run.pools(framework):
        if not question.gold_sessions:
            continue
        read = pools(pool) if pools else pool
        for arm in arms:
            ids = [str(read.ids[i]) for i in arm.pick(read, max(budgets), question.text)]
            found = [coverage(question, ids[:k], run.records) for k in budgets]
            for metric in SHOWN:
                rates[arm.name][metric].append([getattr(c, metric) for c in found])
    return {
        arm: {metric: np.array(rows) for metric, rows in by_metric.items()}
        for arm, by_metric in rates.items()
    }


def means(rates: NDArray[np.float64]) -> list[float]:
    """Return the mean over questions at every budget."""
    return [round(float(v), 5) for v in rates.mean(axis=0)]
