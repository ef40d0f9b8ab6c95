"""What the pools look like, without any gold evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mempursuit_core.inputs import unit, unit_rows

NEAR_DUPLICATE = 0.95  # the cosine at which the preset `auto` counts a repeat


@dataclass(frozen=True)
class Geometry:
    """Means over questions.

    Attributes:
        k: the budget looked at.
        best: cosine of the closest memory to the question.
        pairwise: cosine between two memories of the whole pool.
        nearest: of the framework's own top K, cosine of each memory to the nearest other one.
        effective_rank: exp of the entropy of the top K's spectrum: how many directions it really
            spans, between 1 and K (Roy and Vetterli, 2007).
        near_duplicates: share of memories whose nearest other is at NEAR_DUPLICATE or closer.
    """

    k: int
    best: float
    pairwise: float
    nearest: float
    effective_rank: float
    near_duplicates: float

    @property
    def crowding(self) -> float:
        """How much closer any two memories are to each other than the best one is to the question.

        Above zero all memories share more with one another than with the question (long raw
        messages do): then what is left of the question is no guide to what is missing. Repeats
        of a few facts do not raise it, as the rest of the pool stays apart.
        """
        return self.pairwise - self.best


def measure_geometry(pools: Sequence[tuple[np.ndarray, np.ndarray]], k: int) -> Geometry:
    """Look at every (query (d,), candidates (P, d)) of at least two candidates.

    Raises:
        ValueError: no pool has two memories.
    """
    rows = []
    for query, candidates in pools:
        if len(candidates) < 2:
            continue
        pool, q = unit_rows(candidates, "candidates"), unit(query, "query")
        P, total = len(pool), pool.sum(axis=0)
        M = pool[: max(2, k)]
        n = len(M)
        G = M @ M.T
        spectrum = np.linalg.eigvalsh(G) / n
        spectrum = spectrum[spectrum > 1e-12]
        away = G - 2 * np.eye(n)  # no memory is its own neighbour
        nearest = away.max(axis=1)
        rows.append(
            (
                (pool @ q).max(),
                (total @ total - P) / (P * (P - 1)),
                nearest.mean(),
                np.exp(-(spectrum * np.log(spectrum)).sum()),
                (nearest >= NEAR_DUPLICATE).mean(),
            )
        )
    if not rows:
        raise ValueError("no pool has two memories: there is nothing to choose from")
    return Geometry(k, *(float(v) for v in np.mean(rows, axis=0)))
