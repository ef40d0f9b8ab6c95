"""The fully corrective refit (paper Eq. 6): a simplex QP over the members, warm-started.

Active-set method (Wolfe 1976): the corral is the set of members with positive weight, and L the
Cholesky factor of H = G + λI + 11ᵀ over it. The 11ᵀ adds the constant ½(Σα)² = ½ to the
objective, so it does not move the solution; it makes a pivot vanish exactly when a memory lies in
the affine hull of the corral, where it cannot lower the objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.jit import borrowing

# Squared distance to the corral's affine hull below which a memory adds no direction.
NO_NEW_DIRECTION = 1e-15
# Rounding of a slope: unit vectors, a few operations.
ROUNDING = 1e-15


@borrowing
def refit(
    G: NDArray[Any],
    b: NDArray[Any],
    n: int,
    ridge: float,
    alpha: NDArray[Any],
    corral: NDArray[Any],
    size: int,
    L: NDArray[Any],
    entering: int,
    scratch: NDArray[Any],
) -> int:
    """Refit the weights after member `entering` joined; return the corral's new size.

    Args:
        G: (≥n, ≥n) Gram matrix of the members; b: (≥n,) their cosines with the query.
        n: number of members; ridge: λ.
        alpha: (≥n,) the last weights, updated in place; 0 outside the corral.
        corral: (≥n,) int64, the members in the order of L's rows; the first `size` count.
        L: (≥n, ≥n) lower triangular factor, updated in place.
        scratch: (4, ≥n), overwritten.
    """
    barred = scratch[0]
    for i in range(n):
        barred[i] = 0.0
    best = entering
    for _ in range(10 * n + 100):
        if append(G, ridge, corral, size, L, best):
            size = descend(G, b, ridge, alpha, corral, size + 1, L, scratch)
        else:
            barred[best] = 1.0
        if alpha[best] == 0.0:
            barred[best] = 1.0  # it came and went: entering again would cycle
        best = steepest(G, b, n, ridge, alpha, barred, scratch[3])
        if best < 0:
            break
    return size


@borrowing
def descend(
    G: NDArray[Any],
    b: NDArray[Any],
    ridge: float,
    alpha: NDArray[Any],
    corral: NDArray[Any],
    size: int,
    L: NDArray[Any],
    scratch: NDArray[Any],
) -> int:
    """Move to the corral's own minimiser, dropping every member that would go negative."""
    target = scratch[1]
    while True:
        affine_minimiser(b, corral, size, L, target, scratch[2])
        step, first = 1.0, -1
        for c in range(size):
            if target[c] <= 0.0:
                now = alpha[corral[c]]
                length = now / (now - target[c]) if now > 0.0 else 0.0
                if length < step or first < 0:
                    step, first = length, c
        for c in range(size):
            member = corral[c]
            alpha[member] += step * (target[c] - alpha[member])
        if first < 0:
            total = 0.0
            for c in range(size):
                total += alpha[corral[c]]
            for c in range(size):
                alpha[corral[c]] /= total
            return size
        alpha[corral[first]] = 0.0
        for c in range(size):
            if alpha[corral[c]] < 0.0:  # rounding of the step
                alpha[corral[c]] = 0.0
        size = remove(G, ridge, corral, size, L, first)


@borrowing
def append(
    G: NDArray[Any], ridge: float, corral: NDArray[Any], size: int, L: NDArray[Any], member: int
) -> bool:
    """Add `member` as the last row of L; False, and nothing changed, if it adds no direction."""
    corral[size] = member
    pivot = factor_row(G, ridge, corral, L, size, 0)
    if pivot <= NO_NEW_DIRECTION:
        return False
    L[size, size] = np.sqrt(pivot)
    return True


@borrowing
def remove(
    G: NDArray[Any], ridge: float, corral: NDArray[Any], size: int, L: NDArray[Any], gone: int
) -> int:
    """Take row `gone` out; only the rows below it, right of its column, are factored again."""
    for c in range(gone, size - 1):
        corral[c] = corral[c + 1]
        for k in range(gone):
            L[c, k] = L[c + 1, k]
    for c in range(gone, size - 1):
        pivot = factor_row(G, ridge, corral, L, c, gone)
        L[c, c] = np.sqrt(max(pivot, NO_NEW_DIRECTION))
    return size - 1


@borrowing
def factor_row(
    G: NDArray[Any], ridge: float, corral: NDArray[Any], L: NDArray[Any], row: int, start: int
) -> float:
    """Fill columns ≥ `start` of one row of L; return its squared pivot."""
    member = corral[row]
    pivot: float = G[member, member] + ridge + 1.0
    for k in range(row):
        if k >= start:
            s = G[member, corral[k]] + 1.0
            for j in range(k):
                s -= L[row, j] * L[k, j]
            L[row, k] = s / L[k, k]
        pivot -= L[row, k] * L[row, k]
    return pivot


@borrowing
def affine_minimiser(
    b: NDArray[Any],
    corral: NDArray[Any],
    size: int,
    L: NDArray[Any],
    target: NDArray[Any],
    z: NDArray[Any],
) -> None:
    """Set target to the minimiser over the corral with Σα = 1 and no sign constraint.

    With L y = b and L z = 1 it is L⁻ᵀ (y − ν z), where ν makes the weights sum to 1.
    """
    yz = 0.0
    zz = 0.0
    for c in range(size):
        s = b[corral[c]]
        u = 1.0
        for j in range(c):
            s -= L[c, j] * target[j]
            u -= L[c, j] * z[j]
        target[c] = s / L[c, c]
        z[c] = u / L[c, c]
        yz += target[c] * z[c]
        zz += z[c] * z[c]
    nu = (yz - 1.0) / zz
    for c in range(size):
        target[c] -= nu * z[c]
    for c in range(size - 1, -1, -1):
        target[c] /= L[c, c]
        for j in range(c):
            target[j] -= L[c, j] * target[c]


@borrowing
def steepest(
    G: NDArray[Any],
    b: NDArray[Any],
    n: int,
    ridge: float,
    alpha: NDArray[Any],
    barred: NDArray[Any],
    slope: NDArray[Any],
) -> int:
    """Return the weightless member the objective falls fastest towards, or −1 at the optimum."""
    level = 0.0
    for i in range(n):
        s = b[i] - ridge * alpha[i]
        for j in range(n):
            s -= G[i, j] * alpha[j]
        slope[i] = s
        level += alpha[i] * s
    best, most = -1, level + ROUNDING
    for i in range(n):
        if alpha[i] == 0.0 and barred[i] == 0.0 and slope[i] > most:
            best, most = i, slope[i]
    return best
