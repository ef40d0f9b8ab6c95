"""The paper's Appendix A.1 as it is written, in numpy: the benchmark's yardstick.

The whole Gram matrix first, then K greedy steps, each with a refit of all selected weights by an
active set. float32 Gram, float64 weights, no savings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.floating[Any]]


def select_full_gram(
    query: Matrix, candidates: Matrix, k: int, ridge: float = 1e-10
) -> NDArray[np.int64]:
    """Return min(k, P) pool indices in entry order; query (d,), candidates (P, d), any length."""
    M = candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
    q = query / np.linalg.norm(query)
    G = M @ M.T
    b = M @ q
    left = np.ones(len(b), dtype=bool)
    picked: list[int] = []
    alpha: Matrix = np.zeros(0)
    for _ in range(min(k, len(b))):
        utility = b - G[:, picked] @ alpha
        best = int(np.argmax(np.where(left, utility, -np.inf)))
        left[best] = False
        picked.append(best)
        start = np.append(alpha, 0.0) if len(alpha) else np.ones(1)
        alpha = _refit(G[np.ix_(picked, picked)].astype(np.float64), b[picked], ridge, start)
    return np.array(picked, dtype=np.int64)


def _refit(G: Matrix, b: Matrix, ridge: float, start: Matrix) -> Matrix:
    """Return argmin ½αᵀGα − bᵀα + (λ/2)‖α‖² over the simplex (Eq. 6), from a feasible start."""
    alpha: Matrix = start.copy()
    active = alpha > 0
    H = G + ridge * np.eye(len(b))
    for _ in range(10 * len(b)):
        slope = b - H @ alpha
        best = int(np.argmax(np.where(active, -np.inf, slope)))
        if active.all() or slope[best] <= slope @ alpha + 1e-7:  # float32 G
            break
        active[best] = True
        while True:
            on = np.flatnonzero(active)
            both = np.linalg.solve(H[np.ix_(on, on)], np.column_stack([b[on], np.ones(len(on))]))
            target = both[:, 0] + both[:, 1] * (1 - both[:, 0].sum()) / both[:, 1].sum()
            blocked = target <= 0
            if not blocked.any():
                alpha[on] = target
                break
            ratio = np.full(len(on), np.inf)
            ratio[blocked] = alpha[on][blocked] / (alpha[on] - target)[blocked]
            first = int(np.argmin(ratio))
            alpha[on] += min(1.0, ratio[first]) * (target - alpha[on])
            active[on[first]] = False
            alpha[~active] = 0.0
    return alpha
