"""The pursuit and its dials written down step by step, its refit left to quadprog.

Shares no code with the core: full Gram matrix, a general QP solver, no savings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import quadprog
from numpy.typing import NDArray

from mempursuit_core.tests.pools import Matrix, unit


def simplex_qp(G: Matrix, b: Matrix, ridge: float) -> Matrix:
    """Return argmin ½αᵀGα − bᵀα + (λ/2)‖α‖² with α ≥ 0, Σα = 1, by quadprog's dual method."""
    n = len(b)
    constraints = np.column_stack([np.ones(n), np.eye(n)])
    bounds = np.append(1.0, np.zeros(n))
    solution = quadprog.solve_qp(G + ridge * np.eye(n), b, constraints, bounds, meq=1)[0]
    alpha = np.maximum(solution, 0.0)
    return alpha / alpha.sum()


def objective(G: Matrix, b: Matrix, ridge: float, alpha: Matrix) -> float:
    """Return ½‖q − Σ α_i m_i‖² + (λ/2)‖α‖² for a unit q (paper Eq. 6)."""
    return float(0.5 - b @ alpha + 0.5 * alpha @ G @ alpha + 0.5 * ridge * alpha @ alpha)


@dataclass
class Path:
    """What the pursuit must return."""

    indices: list[int]
    weights: Matrix
    scores: list[float]
    residual_norms: list[float]
    gaps: list[float]


def pursue(
    query: NDArray[np.floating],
    candidates: NDArray[np.floating],
    k: int,
    *,
    ridge: float = 1e-10,
    discount: float | str = 1.0,
    near_duplicate: float | None = None,
) -> Path:
    """Run the pursuit step by step as the paper states it."""
    q, M = unit(query), unit(candidates)
    P = len(M)
    G, b = M @ M.T, M @ q
    S: list[int] = []
    alpha = np.zeros(0)
    path = Path([], alpha, [], [], [])
    for t in range(min(k, P)):
        gamma = discount
        if discount == "auto":
            gamma = min(1.0, t / 8) * min(max(0.75 * b.max(), 0.0), 1.0)
        score = b - float(gamma) * (G[:, S] @ alpha)
        left = [i for i in range(P) if i not in S]
        fresh = left
        if near_duplicate is not None:
            fresh = [i for i in left if all(G[i, j] < near_duplicate for j in S)] or left
        pick = max(fresh, key=lambda i: (score[i], -i))
        S.append(pick)
        alpha = simplex_qp(G[np.ix_(S, S)], b[S], ridge)
        r = q - alpha @ M[S]
        U = M @ r
        nu = alpha @ U[S] - ridge * alpha @ alpha
        left.remove(pick)
        path.indices.append(pick)
        path.scores.append(score[pick])
        path.residual_norms.append(float(np.linalg.norm(r)))
        path.gaps.append(max(0.0, max((U[i] for i in left), default=-np.inf) - nu))
    path.weights = alpha
    return path
