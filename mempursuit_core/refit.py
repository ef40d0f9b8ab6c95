"""The fully corrective refit: a small simplex QP (paper Eq. 6), solved by an active set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def refit(
    gram: NDArray[np.float64],
    b: NDArray[np.float64],
    ridge: float,
    start: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return argmin ½αᵀGα − bᵀα + (λ/2)‖α‖² over the simplex, shape (n,), warm-started.

    `gram` (n, n) and `b` (n,) are of the selected memories; `start` (n,) is feasible.
    """
    n = len(b)
    alpha = start.copy()
    active = alpha > 0
    H = gram + ridge * np.eye(n)
    for _ in range(50 * n + 100):
        slope = b - H @ alpha
        level = slope @ alpha
        best = int(np.argmax(np.where(active, -np.inf, slope)))
        if active.all() or slope[best] <= level:
            return alpha
        active[best] = True
        while True:
            on = np.flatnonzero(active)
            target = _affine_minimiser(H[np.ix_(on, on)], b[on])
            if target is None:
                active[best] = False
                alpha[best] = 0.0
                return alpha
            step = target - alpha[on]
            blocked = target <= 0
            if not blocked.any():
                alpha[on] = target
                break
            ratio = np.full(len(on), np.inf)
            ratio[blocked] = alpha[on][blocked] / -step[blocked]
            first = int(np.argmin(ratio))
            alpha[on] += min(1.0, ratio[first]) * step
            alpha[on[first]] = 0.0
            active[on[first]] = False
            alpha[~active] = 0.0
    return alpha


def _affine_minimiser(H: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the minimiser with Σα = 1 and no sign constraint, or None if H is singular."""
    try:
        np.linalg.cholesky(H)
        both = np.linalg.solve(H, np.column_stack([b, np.ones(len(b))]))
    except np.linalg.LinAlgError:
        return None
    free, ones = both.T
    return np.asarray(free + ones * (1.0 - free.sum()) / ones.sum())
