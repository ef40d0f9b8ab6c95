"""What happens: greedy residual selection with fully corrective refits (paper §3.2, Figure 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.composition import (
    add_member,
    empty_composition,
    update_residual,
    with_room,
)
from mempursuit_core.kernels.jit import borrowing, compiled, entry_point
from mempursuit_core.kernels.lazy import (
    ALL_SEEN,
    FREE,
    NEGLECTED,
    NOBODY,
    SELECTED,
    WAITING,
    Pool,
    Residual,
    best_candidate,
    bring_up_to_date,
    make_exact,
    repeats_a_pick,
)
from mempursuit_core.kernels.scan import copy, relevance_scan, squared_norm

NUMERICAL_FLOOR = 1e-12  # the paper's ε_num (Appendix A.1)
AUTO = -1.0  # discount: γ_t of `discount_at`
MANY = 8  # picks after the optimum for which it pays to bring all utilities up to date at once
OFF = 2.0  # near_duplicate: no cosine reaches it


@entry_point
def pursue(
    M: NDArray[Any],
    q: NDArray[Any],
    n: int,
    ridge: float,
    discount: float,
    near_duplicate: float,
    tolerance: float,
    patience: int,
    rounding: float,
    smallest: float,
    largest: float,
) -> tuple[
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
]:
    """Pick n of the P memories.

    Args:
        M: (P, d) rows of any length, float32 or float64, P ≥ 1; q: (d,) float64, any length.
        n: picks, 1 ≤ n ≤ P; ridge: λ.
        discount: γ, or AUTO; near_duplicate: τ, or OFF.
        tolerance, patience: adaptive stopping (Eq. 7); patience 0 spends the whole budget.
        rounding: bound of a scan's rounding error for unit vectors.
        smallest, largest: squared norms outside these cannot be trusted in M's precision.

    Returns:
        (picks, weights, scores, residual norms, gaps, refits, members, path): the first six have
        one entry a pick; refits[t] is the row of `path` that holds α after pick t, over the picks
        listed in `members`. No picks at all: the query or some row is not finite, zero or out of
        range.
    """
    pool, first, usable = read_pool(M, q, rounding, smallest, largest)
    if not usable:
        n = 0
    picks, refits = np.empty(n, np.int64), np.empty(n, np.int64)
    scores, norms, gaps, weights = np.empty(n), np.empty(n), np.empty(n), np.zeros(n)
    composition = empty_composition(min(max(n, 1), 32))
    r, scan, drift = pool.q.copy(), np.empty(M.shape[1], M.dtype), np.zeros(n + 1)
    copy(r, scan)
    residual = Residual(composition.counts[0], r, scan, 1.0, drift)
    loss, previous, nu = 1.0, 1.0, -np.inf
    top, still, done = 0.0, 0, 0
    rival, optimal = NOBODY, False
    while done < n and not optimal:
        t = done
        gamma = discount_at(t, discount, top)
        vanished = t > 0 and loss <= NUMERICAL_FLOOR
        if rival != NOBODY and gamma == 1.0 and near_duplicate == OFF and not vanished:
            best = rival  # with the paper's dials the certificate has named it already
        else:
            best = next_pick(pool, residual, picks, t, gamma, near_duplicate, vanished)
        utility = pool.value[best]
        picks[t] = best
        scores[t] = (1.0 - gamma) * pool.b[best] + gamma * utility
        if t == 0:
            top = pool.b[best]
            if best == 0:
                utilities_after_row_0(pool, first)
        pool.status[best] = NEGLECTED
        joining, pick = (best, t) if utility > nu else (NOBODY, NOBODY)
        while joining != NOBODY:  # once, unless an earlier pick that had no use has some now
            pool.status[joining] = SELECTED
            composition = with_room(composition)
            add_member(composition, pool, joining, pick, ridge)
            loss, nu = update_residual(composition, pool, r, drift, ridge)
            copy(r, scan)
            # Utilities after row 0 are differences of two scans of unit vectors.
            scale = 2.0 if t == 0 else np.sqrt(loss)
            residual = Residual(composition.counts[0], r, scan, scale, drift)
            joining, pick = neglected_pick(pool, residual, picks, t, nu)
        # The certificate (Theorem B.2).
        rival = best_candidate(pool, residual, WAITING, 0.0, 1.0)
        gaps[t] = max(0.0, pool.value[rival] - nu) if rival != NOBODY else 0.0
        optimal = gaps[t] == 0.0
        refits[t] = composition.counts[0] - 1
        norms[t] = np.sqrt(loss)
        done += 1
        still = unmoved(previous, loss, tolerance, still)
        previous = loss
        if 0 < patience <= still:
            n = done
    if patience > 0:
        n = min(n, done + patience - still)  # from here on no refit moves anything
    if done < n:
        # No later pick can change α: the rest of the path is a matter of scores.
        rest(pool, residual, picks, scores, done, n, discount, near_duplicate, top, loss)
        refits[done:n] = composition.counts[0] - 1
        norms[done:n] = np.sqrt(loss)
        gaps[done:n] = 0.0
    m = composition.counts[0]
    for j in range(m):
        weights[composition.picks[j]] = composition.alpha[j]
    return (
        picks[:n],
        weights[:n],
        scores[:n],
        norms[:n],
        gaps[:n],
        refits[:n],
        composition.picks[:m],
        composition.path[:m, :m],
    )


@borrowing
def rest(
    pool: Pool,
    residual: Residual,
    picks: NDArray[Any],
    scores: NDArray[Any],
    done: int,
    n: int,
    discount: float,
    near_duplicate: float,
    top: float,
    loss: float,
) -> None:
    """Pick until there are n, with the residual as it is."""
    if n - done > MANY:
        bring_up_to_date(pool, residual)
    for t in range(done, n):
        gamma = discount_at(t, discount, top)
        vanished = loss <= NUMERICAL_FLOOR
        best = next_pick(pool, residual, picks, t, gamma, near_duplicate, vanished)
        picks[t] = best
        scores[t] = (1.0 - gamma) * pool.b[best] + gamma * pool.value[best]
        pool.status[best] = NEGLECTED


@borrowing
def unmoved(previous: float, loss: float, tolerance: float, still: int) -> int:
    """Return how many refits in a row have improved the loss by no more than the tolerance."""
    gain = (previous - loss) / max(previous, NUMERICAL_FLOOR)  # Δ of Eq. 7
    return still + 1 if gain <= tolerance else 0


@compiled
def read_pool(
    M: NDArray[Any], q: NDArray[Any], rounding: float, smallest: float, largest: float
) -> tuple[Pool, NDArray[Any], bool]:
    """Return the Pool after one pass over it, the cosines to row 0, and whether to trust it."""
    P = M.shape[0]
    square = squared_norm(q)
    usable = smallest < square < largest  # NaN fails too
    q = q / np.sqrt(square)
    scan = np.empty(M.shape[1], M.dtype)
    copy(q, scan)
    b, first, inverse = np.empty(P), np.empty(P), np.empty(P)
    relevance_scan(M, scan, b, first, inverse)
    value, seen, exact = np.empty(P), np.zeros(P, np.int64), np.empty(P, np.int64)
    for i in range(P):
        usable &= smallest < inverse[i] < largest
        inverse[i] = 1.0 / np.sqrt(inverse[i])
        b[i] *= inverse[i]
        first[i] *= inverse[i] * inverse[0]
        value[i] = b[i]
        exact[i] = NOBODY
    status = np.zeros(P, np.int8)  # FREE
    notes = np.full(2, NOBODY)
    notes[ALL_SEEN] = 0
    return Pool(M, q, inverse, b, value, seen, exact, notes, status, rounding), first, usable


@borrowing
def utilities_after_row_0(pool: Pool, first: NDArray[Any]) -> None:
    """Set every utility for the residual q − m_0."""
    b, value, seen = pool.b, pool.value, pool.seen
    for i in range(b.shape[0]):
        value[i] = b[i] - first[i]
        seen[i] = 1
    pool.notes[ALL_SEEN] = 1


@borrowing
def discount_at(t: int, discount: float, top: float) -> float:
    """Return γ for the pick made with t memories selected; `top` is max b."""
    if discount != AUTO:
        return discount
    return min(1.0, t / 8.0) * min(max(0.75 * top, 0.0), 1.0)


@borrowing
def next_pick(
    pool: Pool,
    residual: Residual,
    picks: NDArray[Any],
    t: int,
    gamma: float,
    near_duplicate: float,
    vanished: bool,
) -> int:
    """Return the candidate with the largest score b − γ Σ G α = (1 − γ) b + γ U, made exact.

    Near-duplicates of a pick are set aside until only they are left. Nothing missing any more:
    pool order.
    """
    while True:
        if vanished:
            best = first_of(pool.status, FREE)
        else:
            best = best_candidate(pool, residual, FREE, 1.0 - gamma, gamma)
        if best == NOBODY or near_duplicate == OFF:
            break
        make_exact(pool, residual, best)
        if not repeats_a_pick(pool, best, picks, t, near_duplicate):
            break
        pool.status[best] = WAITING
    if best == NOBODY and vanished:
        best = first_of(pool.status, WAITING)
    elif best == NOBODY:
        best = best_candidate(pool, residual, WAITING, 1.0 - gamma, gamma)
    make_exact(pool, residual, best)
    return best


@borrowing
def first_of(status: NDArray[Any], wanted: int) -> int:
    """Return the smallest index with this status, or NOBODY."""
    for i in range(status.shape[0]):
        if status[i] == wanted:
            return i
    return NOBODY


@borrowing
def neglected_pick(
    pool: Pool, residual: Residual, picks: NDArray[Any], t: int, nu: float
) -> tuple[int, int]:
    """Return one of the first t picks, and its number, that is no member and has U > ν by now.

    Only the dials beyond the paper pick memories with U ≤ ν before the optimum.
    """
    status, value, seen, drift = pool.status, pool.value, pool.seen, residual.drift
    best, number, most = NOBODY, NOBODY, nu + 1e-15
    for s in range(t):
        i = picks[s]
        if status[i] != NEGLECTED or value[i] + drift[seen[i]] + 2.0 * pool.rounding <= most:
            continue
        make_exact(pool, residual, i)
        if value[i] > most:
            best, number, most = i, s, value[i]
    return best, number
