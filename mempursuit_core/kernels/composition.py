"""The picks that may carry weight, and everything the refit knows about them.

A pick becomes a *member* when it can lower the objective, U > ν; the others keep weight 0 and are
never looked at by the refit. There are as many refits as members at most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.jit import borrowing, compiled
from mempursuit_core.kernels.lazy import Pool
from mempursuit_core.kernels.refit import refit
from mempursuit_core.kernels.scan import copy, four_exact_products, squared_norm, subtract_four


class Composition(NamedTuple):
    """Arrays with room for c members."""

    counts: NDArray[Any]  # (2,) number of members, size of the corral
    rows: NDArray[Any]  # (c,) their pool index
    picks: NDArray[Any]  # (c,) which pick each is
    G: NDArray[Any]  # (c, c) their cosines, float64
    b: NDArray[Any]  # (c,) their cosines to the query
    alpha: NDArray[Any]  # (c,) the weights
    corral: NDArray[Any]  # (c,) and L (c, c): see refit
    L: NDArray[Any]
    path: NDArray[Any]  # (c, c) row s is α after refit s
    length: NDArray[Any]  # (c,) ‖Σ α m‖² after refit s
    scratch: NDArray[Any]  # (4, c)


@compiled
def empty_composition(capacity: int) -> Composition:
    """Return a Composition without members."""
    return Composition(
        np.zeros(2, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty((capacity, capacity)),
        np.empty(capacity),
        np.zeros(capacity),
        np.empty(capacity, np.int64),
        np.empty((capacity, capacity)),
        np.zeros((capacity, capacity)),
        np.empty(capacity),
        np.empty((4, capacity)),
    )


@compiled
def with_room(c: Composition) -> Composition:
    """Return the composition itself, or a copy with twice the room when it is full."""
    n = c.counts[0]
    if n < c.rows.shape[0]:
        return c
    wide = empty_composition(2 * n)
    wide.counts[0], wide.counts[1] = c.counts[0], c.counts[1]
    # Loops, because slice assignments are what numba compiles slowest.
    for i in range(n):
        wide.rows[i] = c.rows[i]
        wide.picks[i] = c.picks[i]
        wide.b[i] = c.b[i]
        wide.alpha[i] = c.alpha[i]
        wide.corral[i] = c.corral[i]
        wide.length[i] = c.length[i]
        for j in range(n):
            wide.G[i, j] = c.G[i, j]
            wide.L[i, j] = c.L[i, j]
            wide.path[i, j] = c.path[i, j]
    return wide


@borrowing
def add_member(c: Composition, pool: Pool, i: int, pick: int, ridge: float) -> None:
    """Let candidate i (exact by now) join, and refit the weights (paper Eq. 6)."""
    M, inverse = pool.M, pool.inverse
    rows, G, alpha, path = c.rows, c.G, c.alpha, c.path
    n = c.counts[0]
    rows[n] = i
    for j in range(0, n, 4):
        s = four_exact_products(
            M, rows[j], rows[min(j + 1, n)], rows[min(j + 2, n)], rows[min(j + 3, n)], i
        )
        for k in range(min(4, n - j)):
            cosine = s[k] * inverse[i] * inverse[rows[j + k]]
            G[n, j + k] = cosine
            G[j + k, n] = cosine
    G[n, n] = 1.0
    c.b[n] = pool.b[i]
    c.picks[n] = pick
    c.counts[0] = n + 1
    c.counts[1] = refit(G, c.b, n + 1, ridge, alpha, c.corral, c.counts[1], c.L, n, c.scratch)
    for j in range(n + 1):
        path[n, j] = alpha[j]


@borrowing
def update_residual(
    c: Composition, pool: Pool, r: NDArray[Any], drift: NDArray[Any], ridge: float
) -> tuple[float, float]:
    """Set r = q − Σ α m (paper Eq. 3) and drift[s] ≥ ‖r − r_s‖; return ‖r‖² and ν.

    ν = Σ α_j U_j − λ‖α‖² (paper Eq. 14).
    """
    M, inverse = pool.M, pool.inverse
    rows, G, b, alpha, path, length = c.rows, c.G, c.b, c.alpha, c.path, c.length
    n = c.counts[0]
    copy(pool.q, r)
    nu = 0.0
    own = 0.0
    reach = c.scratch[0]  # Gα
    for j in range(n):
        s = 0.0
        for k in range(n):
            s += G[j, k] * alpha[k]
        reach[j] = s
        own += alpha[j] * s
        nu += alpha[j] * (b[j] - s - ridge * alpha[j])
    subtract_all(M, inverse, rows, alpha, c.corral, c.counts[1], r)
    length[n - 1] = own
    # Residual 0 is q itself, residual s + 1 comes from refit s; all differences lie in the span
    # of the members, so G measures them.
    drift[0] = np.sqrt(own)
    for s in range(n - 1):
        cross = 0.0
        for j in range(s + 1):
            cross += path[s, j] * reach[j]
        drift[s + 1] = np.sqrt(max(0.0, own - 2.0 * cross + length[s]) + 1e-15)
    drift[n] = 0.0
    return squared_norm(r), nu


@borrowing
def subtract_all(
    M: NDArray[Any],
    inverse: NDArray[Any],
    rows: NDArray[Any],
    alpha: NDArray[Any],
    corral: NDArray[Any],
    size: int,
    r: NDArray[Any],
) -> None:
    """Take Σ α m over the corral off r, four at a time; the last four are filled up with 0 · m."""
    for start in range(0, size, 4):
        j0 = corral[start]
        j1, j2, j3 = j0, j0, j0
        w0, w1, w2, w3 = alpha[j0] * inverse[rows[j0]], 0.0, 0.0, 0.0
        if start + 1 < size:
            j1 = corral[start + 1]
            w1 = alpha[j1] * inverse[rows[j1]]
        if start + 2 < size:
            j2 = corral[start + 2]
            w2 = alpha[j2] * inverse[rows[j2]]
        if start + 3 < size:
            j3 = corral[start + 3]
            w3 = alpha[j3] * inverse[rows[j3]]
        subtract_four(M, rows[j0], rows[j1], rows[j2], rows[j3], (w0, w1, w2, w3), r)
