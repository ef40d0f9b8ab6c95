"""The pursuit itself: greedy residual selection with fully corrective refits (paper §3.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mempursuit_core.inputs import (
    as_budget,
    as_candidates,
    as_query,
    check_dials,
    check_stop,
    unit,
    unit_rows,
)
from mempursuit_core.presets import Discount
from mempursuit_core.refit import refit
from mempursuit_core.selection import Selection
from mempursuit_core.stopping import NUMERICAL_FLOOR, AdaptiveStop

# Two copies of one memory have cosine 1 up to rounding, and must count as such.
COSINE_TOLERANCE = 1e-12


def select(
    query: ArrayLike,
    candidates: ArrayLike,
    k: int,
    *,
    ridge: float = 1e-10,
    discount: Discount = 1.0,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Selection:
    """Pick the `k` memories that together reconstruct `query` (paper §3, Appendix A.1).

    Args:
        query: (d,) embedding of the query; any length, it is normalised here.
        candidates: (P, d) embeddings of the pool, one memory a row, in the backbone's order.
        k: the budget; a pool smaller than `k` is returned whole.
        ridge: λ of the refit (Eq. 6).
        discount: share γ of the reconstruction taken off the score, or "auto" (contract §3).
        near_duplicate: cosine τ at which a memory counts as a repeat of a picked one and waits
            at the end; None turns it off (contract §3).
        stop: adaptive stopping (Eq. 7); None spends the whole budget.

    Returns:
        Selection: picks in entry order.

    Raises:
        ValueError: an argument has the wrong shape, is not finite, is a zero vector, or is out of
            range; the message names the argument and the row.
    """
    budget = as_budget(k)
    check_dials(ridge, discount, near_duplicate)
    check_stop(stop)
    q_raw = as_query(query)
    q = unit(q_raw, "query")
    M = unit_rows(as_candidates(candidates, q_raw.shape[0]), "candidates")
    P = M.shape[0]
    n = min(budget, P)
    b = _dots(M, q)
    picked: list[int] = []
    rest = np.ones(P, dtype=bool)
    waiting = np.zeros(P, dtype=bool)
    columns = np.zeros((n, P))
    alpha = np.zeros(0)
    explained = np.zeros(P)
    scores, norms, gaps = np.zeros(n), np.zeros(n), np.zeros(n)
    path = np.zeros((n, n))
    previous, still = 1.0, 0
    done = 0
    vanished = False
    for t in range(n):
        gamma = _discount_at(t, discount, b)
        score = b - gamma * explained
        open_ = rest & ~waiting if (rest & ~waiting).any() else rest
        if vanished:
            best = int(np.argmax(open_))
        else:
            best = int(np.argmax(np.where(open_, score, -np.inf)))
        scores[t] = score[best]
        picked.append(best)
        rest[best] = False
        columns[t] = _dots(M, M[best])
        if near_duplicate is not None:
            waiting |= columns[t] >= near_duplicate - COSINE_TOLERANCE
        G = columns[: t + 1][:, picked]
        alpha = refit(G, b[picked], ridge, np.append(alpha, 0.0) if t else np.ones(1))
        path[t, : t + 1] = alpha
        r = q - alpha @ M[picked]
        U = _dots(M, r)
        explained = b - U
        loss = float(r @ r)
        vanished = loss <= NUMERICAL_FLOOR
        level = float(alpha @ U[picked] - ridge * alpha @ alpha)
        norms[t] = np.sqrt(loss)
        gaps[t] = max(0.0, float(U[rest].max()) - level) if rest.any() else 0.0
        done = t + 1
        if stop is not None:
            gain = (previous - loss) / max(previous, NUMERICAL_FLOOR)
            still = still + 1 if gain <= stop.tolerance else 0
            if still >= stop.patience:
                break
        previous = loss
    return Selection(
        np.array(picked, dtype=np.int64),
        alpha.copy(),
        scores[:done].copy(),
        norms[:done].copy(),
        gaps[:done].copy(),
        path[:done, :done].copy(),
    )


def _discount_at(t: int, discount: Discount, b: NDArray[np.float64]) -> float:
    """Return γ for the pick made with `t` memories already selected (contract §3)."""
    if discount == "auto":
        return min(1.0, t / 8) * float(np.clip(0.75 * b.max(), 0.0, 1.0))
    return float(discount)


def _dots(M: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return M v, equal for equal rows to the last bit (BLAS treats the last rows differently)."""
    return np.einsum("ij,j->i", M, v)
