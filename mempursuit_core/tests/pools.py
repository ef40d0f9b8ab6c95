"""Pools for the tests: what real stores look like, and the hypothesis strategies over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def unit(values: NDArray[np.floating]) -> Matrix:
    """Return the rows (or the one vector) with unit length, float64."""
    values = np.asarray(values, dtype=np.float64)
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def clustered(
    seed: int, P: int, d: int, *, spread: float = 0.5, clusters: int = 8, shared: float = 1.0
) -> tuple[Matrix, Matrix]:
    """Return a query (d,) and a pool (P, d) in which facts repeat in other words.

    All memories share a direction, as embeddings of one encoder do; the query lies between
    several clusters.
    """
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(clusters, d)) + shared * rng.normal(size=d))
    label = rng.integers(clusters, size=P)
    pool = unit(centres[label] + spread * unit(rng.normal(size=(P, d))))
    weights = rng.dirichlet(np.ones(clusters))
    query = unit(weights @ centres + 0.5 * unit(rng.normal(size=d)))
    return query, pool


@dataclass(frozen=True)
class Problem:
    """One drawn pursuit; float64 inputs of unit length."""

    query: Matrix
    pool: Matrix
    k: int

    def __repr__(self) -> str:
        return f"Problem(P={len(self.pool)}, d={self.pool.shape[1]}, k={self.k})"


@st.composite
def problems(draw: st.DrawFn, *, max_pool: int = 40, wide: bool = False) -> Problem:
    """Draw a pursuit without ties; `wide` keeps d ≥ P, so that the optimum is unique."""
    seed = draw(st.integers(0, 2**32 - 1))
    P = draw(st.integers(1, max_pool))
    d = draw(st.integers(P if wide else 2, max(P, 2) + 60))
    k = draw(st.integers(1, P + 2))
    spread = draw(st.sampled_from([0.05, 0.3, 1.0, 5.0]))
    shared = draw(st.sampled_from([0.0, 1.0, 3.0]))
    query, pool = clustered(
        seed, P, d, spread=spread, shared=shared, clusters=draw(st.integers(1, 10))
    )
    return Problem(query, pool, k)
