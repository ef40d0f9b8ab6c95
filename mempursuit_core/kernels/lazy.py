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

from mempursuit_core.kernels.jit import borrowing
from mempursuit_core.kernels.scan import exact_product, exact_products, four_products

# NEGLECTED picks had U ≤ ν, so they are no members of the composition.
# numpy's integers, because numba compiles a function anew for every Python constant it is given.
FREE, WAITING, SELECTED, NEGLECTED = (cast(int, np.int64(n)) for n in range(4))
NOBODY = cast(int, np.int64(-1))
LIKELY, ALL_SEEN = 0, 1  # places in Pool.notes

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
    notes: NDArray[Any]  # (2,) a likely winner to read first; residual all utilities are of
    status: NDArray[Any]  # (P,) FREE, WAITING (near-duplicate of a pick), SELECTED or NEGLECTED
    rounding: float  # bound of a scan's rounding error for unit vectors


class Residual(NamedTuple):
    """The current r = q − Σ α m (paper Eq. 3)."""

    number: int  # 0 is q itself, s the residual after refit s
    r: NDArray[Any]  # (d,) float64
    scan: NDArray[Any]  # (d,) the same in the pool's precision
    scale: float  # a scan of a unit vector's utility errs by at most Pool.rounding times this
    drift: NDArray[Any]  # drift[s] ≥ ‖r − r_s‖ for every s ≤ number


@borrowing
def best_candidate(pool: Pool, residual: Residual, among: int, wb: float, wu: float) -> int:
    """Return the candidate with the largest wb·b + wu·U, the smaller index on ties, or NOBODY.

    Only candidates with status ≤ `among` count. The winner's `b` and `value` are exact after this.
    """
    b, value, seen, status, notes = pool.b, pool.value, pool.seen, pool.status, pool.notes
    now = residual.number
    if notes[ALL_SEEN] != now:
        refresh(pool, residual, among, wb, wu, 0.0)
    slack = pool.rounding * (wb + wu * residual.scale)
    best, most, runner_up, second = NOBODY, -np.inf, NOBODY, -np.inf
    for i in range(b.shape[0]):
        s = wb * b[i] + wu * value[i]
        if s > second and status[i] <= among and seen[i] == now:
            if s > most:
                best, most, runner_up, second = i, s, best, most
            else:
                runner_up, second = i, s
    if best == NOBODY:
        return best
    notes[LIKELY] = runner_up
    if second < most - 2.0 * slack:
        make_exact(pool, residual, best)
        return best
    # Whoever is within rounding of the front is decided in float64.
    front = most - 2.0 * slack
    best, most = NOBODY, -np.inf
    for i in range(b.shape[0]):
        if wb * b[i] + wu * value[i] >= front and status[i] <= among and seen[i] == now:
            make_exact(pool, residual, i)
            s = wb * b[i] + wu * value[i]
            if s > most:
                best, most = i, s
    return best


@borrowing
def refresh(pool: Pool, residual: Residual, among: int, wb: float, wu: float, reach: float) -> None:
    """Read every candidate again that might come within `reach` of the best.

    Four rows at a time, a likely winner first; what they score tells who of the others need not
    be read.
    """
    b, value, seen, status = pool.b, pool.value, pool.seen, pool.status
    drift, now = residual.drift, residual.number
    reach += pool.rounding * (wb + 2.0 * wu)
    front = -np.inf
    likely = pool.notes[LIKELY]
    if likely != NOBODY and status[likely] <= among:
        front = read_four(pool, residual, wb, wu, likely, likely, likely, likely)
    i0 = i1 = i2 = filled = 0
    for i in range(b.shape[0]):
        if (
            wb * b[i] + wu * (value[i] + drift[seen[i]]) + reach > front
            and status[i] <= among
            and seen[i] != now
        ):
            filled += 1
            if filled == 1:
                i0 = i
            elif filled == 2:
                i1 = i
            elif filled == 3:
                i2 = i
            else:
                front = max(front, read_four(pool, residual, wb, wu, i0, i1, i2, i))
                filled = 0
    if filled > 0:
        i1 = i1 if filled > 1 else i0
        i2 = i2 if filled > 2 else i0
        read_four(pool, residual, wb, wu, i0, i1, i2, i0)


@borrowing
def read_four(
    pool: Pool, residual: Residual, wb: float, wu: float, i0: int, i1: int, i2: int, i3: int
) -> float:
    """Bring four utilities up to date; return what the largest of their scores is at least."""
    b, value, inverse, seen, exact = pool.b, pool.value, pool.inverse, pool.seen, pool.exact
    s0, s1, s2, s3 = four_products(pool.M, i0, i1, i2, i3, residual.scan)
    value[i0] = s0 * inverse[i0]
    value[i1] = s1 * inverse[i1]
    value[i2] = s2 * inverse[i2]
    value[i3] = s3 * inverse[i3]
    seen[i0] = seen[i1] = seen[i2] = seen[i3] = residual.number
    exact[i0] = exact[i1] = exact[i2] = exact[i3] = NOBODY
    largest: float = max(
        max(wb * b[i0] + wu * value[i0], wb * b[i1] + wu * value[i1]),
        max(wb * b[i2] + wu * value[i2], wb * b[i3] + wu * value[i3]),
    )
    return largest - pool.rounding * (wb + wu * residual.scale)


@borrowing
def bring_up_to_date(pool: Pool, residual: Residual) -> None:
    """Read every candidate again whose utility is not of this residual."""
    refresh(pool, residual, WAITING, 0.0, 1.0, np.inf)
    pool.notes[ALL_SEEN] = residual.number


@borrowing
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


@borrowing
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
