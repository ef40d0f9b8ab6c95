"""Finding the best candidate without reading every memory (lazy greedy, with exact bounds).

A utility known for an older residual still bounds today's: mᵀr ≤ mᵀr' + ‖r − r'‖ for a unit m.
So only candidates whose bound reaches the best known score are read again. Scans run in the
pool's precision; whoever could still win within their rounding is decided in float64.

The functions unpack what they use of the tuples once: numba counts references at every attribute.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.jit import compiled
from mempursuit_core.kernels.scan import exact_product, exact_products, four_products

# NEGLECTED picks had U ≤ ν, so they are no members of the composition.
# numpy's integers, because numba compiles a function anew for every Python constant it is given.
FREE, WAITING, SELECTED, NEGLECTED = (cast(int, np.int64(n)) for n in range(4))
NOBODY = cast(int, np.int64(-1))

# Two copies of one memory have cosine 1 up to rounding, and must count as such.
COSINE_TOLERANCE = 1e-12


class Pool(NamedTuple):
    """The candidates and what is known of them; P candidates of dimension d."""

    M: NDArray[Any]  # (P, d) rows as handed in
    q: NDArray[Any]  # (d,) the query, unit length, float64
    inverse: NDArray[Any]  # (P,) 1/‖m‖
    b: NDArray[Any]  # (P,) cosine to the query
    value: NDArray[Any]  # (P,) utility for residual number `seen`
    seen: NDArray[Any]  # (P,)
    exact: NDArray[Any]  # (P,) residual number for which all three are float64 exact; −1: none
    status: NDArray[Any]  # (P,) FREE, WAITING (near-duplicate of a pick), SELECTED or NEGLECTED
    rounding: float  # bound of a scan's rounding error for unit vectors


class Residual(NamedTuple):
    """The current r = q − Σ α m (paper Eq. 3)."""

    number: int  # 0 is q itself, s the residual after refit s
    r: NDArray[Any]  # (d,) float64
    scan: NDArray[Any]  # (d,) the same in the pool's precision
    scale: float  # a scan of a unit vector's utility errs by at most Pool.rounding times this
    drift: NDArray[Any]  # drift[s] ≥ ‖r − r_s‖ for every s ≤ number


@compiled
def best_candidate(pool: Pool, residual: Residual, among: int, wb: float, wu: float) -> int:
    """Return the candidate with the largest wb·b + wu·U, the smaller index on ties, or NOBODY.

    Only candidates with status ≤ `among` count. The winner's `b` and `value` are exact after this.
    """
    b, value, seen, status = pool.b, pool.value, pool.seen, pool.status
    now = residual.number
    slack = pool.rounding * (wb + wu * residual.scale)
    best, most, second, stale = NOBODY, -np.inf, -np.inf, False
    for i in range(b.shape[0]):
        if status[i] <= among:
            s = wb * b[i] + wu * value[i]
            stale |= seen[i] != now
            if s > most:
                best, second, most = i, most, s
            elif s > second:
                second = s
    if best == NOBODY:
        return best
    if stale:
        refresh(pool, residual, among, wb, wu, best)
    elif second < most - 2.0 * slack:
        make_exact(pool, residual, best)
        return best
    # Whoever is within rounding of the front is decided in float64.
    front = -np.inf
    for i in range(b.shape[0]):
        if seen[i] == now and status[i] <= among:
            front = max(front, wb * b[i] + wu * value[i] - slack)
    best, most = NOBODY, -np.inf
    for i in range(b.shape[0]):
        if seen[i] == now and status[i] <= among and wb * b[i] + wu * value[i] + slack >= front:
            make_exact(pool, residual, i)
            s = wb * b[i] + wu * value[i]
            if s > most:
                best, most = i, s
    return best


@compiled
def refresh(pool: Pool, residual: Residual, among: int, wb: float, wu: float, first: int) -> None:
    """Read every candidate again that might have the largest score, `first` first.

    Four rows at a time; what they score tells who of the others need not be read.
    """
    M, inverse, b, value = pool.M, pool.inverse, pool.b, pool.value
    seen, status = pool.seen, pool.status
    drift, scan, now = residual.drift, residual.scan, residual.number
    stale_slack = pool.rounding * (wb + 2.0 * wu)
    fresh_slack = pool.rounding * (wb + wu * residual.scale)
    score = -np.inf
    four = np.empty(4, np.int64)
    filled = 0
    if seen[first] == now:
        score = wb * b[first] + wu * value[first] - fresh_slack
    else:
        four[0] = first
        filled = 1
    last = b.shape[0] - 1
    for i in range(last + 1):
        if (
            wb * b[i] + wu * (value[i] + drift[seen[i]]) + stale_slack > score
            and status[i] <= among
            and seen[i] != now
            and i != first
        ):
            four[filled] = i
            filled += 1
        if filled == 4 or (filled > 0 and i == last):
            for c in range(filled, 4):
                four[c] = four[0]
            s = four_products(M, four[0], four[1], four[2], four[3], scan)
            for c in range(filled):
                k = four[c]
                value[k] = s[c] * inverse[k]
                seen[k] = now
                score = max(score, wb * b[k] + wu * value[k] - fresh_slack)
            filled = 0


@compiled
def make_exact(pool: Pool, residual: Residual, i: int) -> None:
    """Bring b, utility and norm of candidate i to float64, for the current residual."""
    if pool.exact[i] == residual.number:
        return
    along, missing, square = exact_products(pool.M, i, pool.q, residual.r)
    inverse = 1.0 / np.sqrt(square)
    pool.inverse[i] = inverse
    pool.b[i] = along * inverse
    pool.value[i] = missing * inverse
    pool.seen[i] = residual.number
    pool.exact[i] = residual.number


@compiled
def repeats_a_pick(pool: Pool, i: int, picks: NDArray[Any], t: int, threshold: float) -> bool:
    """Tell whether candidate i has a cosine ≥ `threshold` to one of the first t picks."""
    M, inverse, rounding = pool.M, pool.inverse, pool.rounding
    threshold -= COSINE_TOLERANCE
    for start in range(0, t, 4):
        a, b = picks[start], picks[min(start + 1, t - 1)]
        c, e = picks[min(start + 2, t - 1)], picks[min(start + 3, t - 1)]
        s = four_products(M, a, b, c, e, M[i])
        for n in range(min(4, t - start)):
            j = picks[start + n]
            both = inverse[i] * inverse[j]
            if s[n] * both < threshold - rounding:
                continue
            if s[n] * both >= threshold + rounding:
                return True
            if exact_product(M, i, j) * both >= threshold:  # the scan cannot tell
                return True
    return False
