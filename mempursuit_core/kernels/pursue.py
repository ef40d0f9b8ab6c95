"""What happens: greedy residual selection with fully corrective refits (paper §3.2, Figure 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.bounds import (
    APART,
    CEILING,
    CENTRE,
    COMMON,
    EPSILON,
    EXACT,
    EXTENT,
    FLOOR,
    FREE,
    INVERSE,
    KNOWN,
    LIKELY,
    NEGLECTED,
    NOBODY,
    OLD,
    QUERY,
    ROUNDING,
    SCANNED,
    SELECTED,
    STATUS,
    STEP,
    WAITING,
    WORK,
    B,
    Pool,
    Residual,
)
from mempursuit_core.kernels.codes import (
    HALF,
    WIDER,
    encode,
    likely_step,
    set_byte_shift,
    set_centre,
)
from mempursuit_core.kernels.composition import (
    ALPHA,
    MEMBERS,
    PATH,
    PICKS,
    Composition,
    add_member,
    empty_composition,
    follow,
    leader,
    loss_and_level,
    make_best_exact,
    make_exact,
    repeats_a_pick,
    with_twice_the_room,
)
from mempursuit_core.kernels.jit import borrowing, compiled, entry_point, names
from mempursuit_core.kernels.lanes import introduce
from mempursuit_core.kernels.scan import copy, squared_norm

NUMERICAL_FLOOR = 1e-12  # the paper's ε_num (Appendix A.1)
AUTO = -1.0  # discount: γ_t of `discount_at`
MANY = 8  # picks after the optimum for which it pays to make all utilities exact at once
OFF = 2.0  # near_duplicate: no cosine reaches it
# What `pick_and_refit` goes on from: picks made, refits that moved nothing, the certificate's
# candidate, ‖r‖², ν and max b; and how many picks there are at the end.
DONE, STILL, RIVAL, LOSS, NU, TOP, END = names(7)


@entry_point
def pursue(
    M: NDArray[Any],
    q: NDArray[Any],
    whole: NDArray[Any],
    real: NDArray[Any],
    dials: NDArray[Any],
    workspace: NDArray[Any],
) -> tuple[int, int, NDArray[Any]]:
    """Pick n of the P memories.

    Args:
        M: (P, d) rows of any length, float32 or float64, P ≥ 1, d a multiple of LANES; q: (d,)
            float64, any length.
        whole: (3, n) int64, 1 ≤ n ≤ P, receives the picks, the refit after each, and the picks
            that are members; real: (4, n) float64, receives weights, scores, residual norms, gaps.
        dials: (5,) λ; γ, or AUTO; τ of near-duplicates, or OFF; tolerance and patience of adaptive
            stopping (Eq. 7), whose patience 0 spends the whole budget.
        workspace: at least P·d bytes to work in.

    Returns:
        (picks made, members, path): row s of `path` holds α after refit s, over the members. No
        picks at all: the query or some row is not finite, zero or out of range.
    """
    n = whole.shape[1]
    pool, usable = read_pool(M, q, workspace)
    composition = empty_composition(min(n, 32), M.shape[1])
    residual = whole_query(pool)
    progress = np.zeros(7)
    progress[LOSS], progress[NU], progress[RIVAL] = 1.0, -np.inf, NOBODY
    if not usable:
        return 0, 0, composition.matrices[PATH]
    while not pick_and_refit(composition, pool, residual, progress, whole, real, dials):
        composition = with_twice_the_room(composition)
    n = int(progress[END])
    for t in range(n):
        real[0, t] = 0.0
    m = composition.counts[MEMBERS]
    for j in range(m):
        whole[2, j] = composition.lists[PICKS, j]
        real[0, whole[2, j]] = composition.reals[ALPHA, j]
    return n, m, composition.matrices[PATH]


@borrowing
def pick_and_refit(
    composition: Composition,
    pool: Pool,
    residual: Residual,
    progress: NDArray[Any],
    whole: NDArray[Any],
    real: NDArray[Any],
    dials: NDArray[Any],
) -> bool:
    """Go on from where `progress` stands until all is picked; False: it takes more room."""
    discount, near_duplicate = dials[1], dials[2]
    tolerance, patience = dials[3], int(dials[4])
    picks, refits = whole[0], whole[1]
    scores, norms, gaps = real[1], real[2], real[3]
    b, utility, status = pool.facts[B], pool.facts[FLOOR], pool.marks[STATUS]
    n, optimal = whole.shape[1], False
    done, still, rival = int(progress[DONE]), int(progress[STILL]), int(progress[RIVAL])
    loss, nu, top = progress[LOSS], progress[NU], progress[TOP]
    while done < n and not optimal:
        if done == composition.lists.shape[1]:  # every pick may become a member
            progress[DONE], progress[STILL], progress[RIVAL] = done, still, rival
            progress[LOSS], progress[NU], progress[TOP] = loss, nu, top
            return False
        t = done
        gamma = discount_at(t, discount, top)
        vanished = t > 0 and loss <= NUMERICAL_FLOOR
        if rival != NOBODY and gamma == 1.0 and near_duplicate == OFF and not vanished:
            best = rival  # with the paper's dials the certificate has named it already
        else:
            best = next_pick(composition, pool, residual, picks, t, gamma, near_duplicate, vanished)
        picks[t] = best
        scores[t] = (1.0 - gamma) * b[best] + gamma * utility[best]
        if t == 0:
            top = b[best]
        status[best] = NEGLECTED
        previous = loss
        joining, pick = (best, t) if utility[best] > nu else (NOBODY, NOBODY)
        while joining != NOBODY:  # once, unless an earlier pick that had no use has some now
            status[joining] = SELECTED
            add_member(composition, pool, joining, pick, dials[0])
            loss, nu = loss_and_level(composition, pool, dials[0])
            follow(composition, pool, residual)
            joining = NOBODY
            if composition.counts[MEMBERS] <= t:  # not every pick is a member
                joining, pick = neglected_pick(composition, pool, picks, t, nu)
        # The certificate (Theorem B.2).
        rival = leader(composition, pool, residual, WAITING, 0.0, 1.0)
        gaps[t] = max(0.0, utility[rival] - nu) if rival != NOBODY else 0.0
        optimal = gaps[t] == 0.0
        refits[t] = composition.counts[MEMBERS] - 1
        norms[t] = np.sqrt(loss)
        done += 1
        still = unmoved(previous, loss, tolerance, still)
        if 0 < patience <= still:
            n = done
    if patience > 0:
        n = min(n, done + patience - still)  # from here on no refit moves anything
    if done < n:
        # No later pick can change α: the rest of the path is a matter of scores.
        rest(
            composition, pool, residual, picks, scores, done, n, discount, near_duplicate, top, loss
        )
        for t in range(done, n):
            refits[t], norms[t], gaps[t] = composition.counts[MEMBERS] - 1, np.sqrt(loss), 0.0
    progress[END] = n
    return True


@borrowing
def rest(
    composition: Composition,
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
    vanished = loss <= NUMERICAL_FLOOR
    if n - done > MANY and near_duplicate == OFF and discount == 1.0 and not vanished:
        # The query is needed no more.
        make_best_exact(composition, pool, residual, n - done, pool.q)
        by_utility(pool, picks, scores, done, n)
        return
    for t in range(done, n):
        gamma = discount_at(t, discount, top)
        best = next_pick(composition, pool, residual, picks, t, gamma, near_duplicate, vanished)
        picks[t] = best
        scores[t] = (1.0 - gamma) * pool.facts[B, best] + gamma * pool.facts[FLOOR, best]
        pool.marks[STATUS, best] = NEGLECTED


@borrowing
def by_utility(pool: Pool, picks: NDArray[Any], scores: NDArray[Any], done: int, n: int) -> None:
    """Pick until there are n by exact utility, the smaller index first on ties."""
    utility, known, left = pool.facts[FLOOR], pool.marks[KNOWN], pool.facts[WORK]
    status = pool.marks[STATUS]
    P = pool.M.shape[0]
    for i in range(P + 4):  # four runs at once, because comparing waits for the one before
        left[i] = -np.inf
        if i < P and status[i] <= WAITING and known[i] == EXACT:
            left[i] = utility[i]
    quarter = (P + 3) // 4
    for t in range(done, n):
        m0, m1, m2, m3 = left[0], left[quarter], left[2 * quarter], left[3 * quarter]
        for i in range(1, quarter):
            m0 = max(m0, left[i])
            m1 = max(m1, left[quarter + i])
            m2 = max(m2, left[2 * quarter + i])
            m3 = max(m3, left[3 * quarter + i])
        most = max(max(m0, m1), max(m2, m3))
        best = 0
        while left[best] != most:
            best += 1
        picks[t], scores[t] = best, most
        left[best] = -np.inf
        status[best] = NEGLECTED


@borrowing
def unmoved(previous: float, loss: float, tolerance: float, still: int) -> int:
    """Return how many refits in a row have improved the loss by no more than the tolerance."""
    gain = (previous - loss) / max(previous, NUMERICAL_FLOOR)  # Δ of Eq. 7
    return still + 1 if gain <= tolerance else 0


@compiled
def read_pool(M: NDArray[Any], q: NDArray[Any], workspace: NDArray[Any]) -> tuple[Pool, bool]:
    """Return the Pool after the only pass over all of it, and whether to trust it.

    Its codes lie in the workspace.
    """
    P, d = M.shape
    single = M.itemsize == 4
    # A sum of squares between these has lost nothing that matters.
    smallest, largest = (1e-25, 1e30) if single else (1e-250, 1e250)
    epsilon = 2.0**-24 if single else 2.0**-53
    rounding = epsilon * (d / 16 + 16)  # scans sum in at least 16 parts
    square = squared_norm(q)
    usable = smallest < square < largest  # NaN fails too
    q = q / np.sqrt(square)
    vectors, codes = np.empty((3, d), M.dtype), workspace[: P * d].reshape(P, d)
    facts, marks = np.empty((8, P + 4)), np.zeros((4, P + 4), np.int64)  # FREE
    query, centre, byte_shift = vectors[QUERY], vectors[CENTRE], vectors[2]
    inverse, b, common = facts[INVERSE], facts[B], facts[COMMON]
    apart, step = facts[APART], facts[STEP]
    copy(q, query)
    set_centre(M, centre)
    middle = squared_norm(centre)
    usable &= middle < 2.0  # not if one of the first rows is of no use
    guess, usual, misfits, extent = 1.0, likely_step(1.0, d), 0, 0.0
    set_byte_shift(centre, usual, byte_shift)
    for i in range(P if usable else 0):
        along, aligned, square, fits = introduce(
            M[i], query, centre, byte_shift, M.dtype.type(guess / usual), codes[i]
        )
        usable &= smallest < square < largest
        if not usable:
            break
        inverse[i] = 1.0 / np.sqrt(square)
        b[i] = along * inverse[i]
        common[i] = aligned * inverse[i]
        facts[FLOOR, i] = b[i] - rounding
        facts[CEILING, i] = b[i] + rounding
        marks[KNOWN, i] = SCANNED
        # 4 roundings for those of the scans; 1e-6 for a step that is not lost in the memory's own.
        apart[i] = np.sqrt(max(1e-6, 1.0 - 2.0 * common[i] + middle + 4.0 * rounding))
        step[i] = usual
        if abs(inverse[i] - guess) > 4.0 * rounding * guess or not fits:
            step[i] = encode(M[i], inverse[i], centre, usual, codes[i])
            guess = inverse[i]
        extent = max(extent, apart[i] + HALF * np.sqrt(d) * step[i])
        misfits += step[i] > usual
        if i == 0 or 8 * misfits > i + 16:  # too many to be outliers
            usual, misfits = (likely_step(apart[i], d) if i == 0 else usual * WIDER), 0
            set_byte_shift(centre, usual, byte_shift)
    numbers = np.empty(4)
    numbers[LIKELY] = NOBODY
    numbers[EXTENT] = extent
    numbers[ROUNDING] = rounding
    numbers[EPSILON] = epsilon
    return Pool(M, q, vectors, codes, facts, marks, numbers), usable


@compiled
def whole_query(pool: Pool) -> Residual:
    """Return the residual before the first pick: q̂ = 0, so the shift is −centre."""
    d = pool.M.shape[1]
    vectors, centre = np.empty((3, d), pool.M.dtype), pool.vectors[CENTRE]
    for j in range(d):
        vectors[OLD, j] = -centre[j]
    return Residual(vectors, np.ones((2, d), np.uint8), np.empty(6))


@borrowing
def discount_at(t: int, discount: float, top: float) -> float:
    """Return γ for the pick made with t memories selected; `top` is max b."""
    if discount != AUTO:
        return discount
    return min(1.0, t / 8.0) * min(max(0.75 * top, 0.0), 1.0)


@borrowing
def next_pick(
    composition: Composition,
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
            best = first_of(pool, FREE)
        else:
            best = leader(composition, pool, residual, FREE, 1.0 - gamma, gamma)
        if best == NOBODY or near_duplicate == OFF:
            break
        if not repeats_a_pick(composition, pool, best, picks, t, near_duplicate):
            break
        pool.marks[STATUS, best] = WAITING
    if best == NOBODY and vanished:
        best = first_of(pool, WAITING)
    elif best == NOBODY:
        best = leader(composition, pool, residual, WAITING, 1.0 - gamma, gamma)
    if vanished:
        make_exact(composition, pool, best)
    return best


@borrowing
def first_of(pool: Pool, wanted: int) -> int:
    """Return the smallest index with this status, or NOBODY."""
    status = pool.marks[STATUS]
    for i in range(pool.M.shape[0]):
        if status[i] == wanted:
            return i
    return NOBODY


@borrowing
def neglected_pick(
    composition: Composition, pool: Pool, picks: NDArray[Any], t: int, nu: float
) -> tuple[int, int]:
    """Return one of the first t picks, and its number, that is no member and has U > ν by now.

    Only the dials beyond the paper pick memories with U ≤ ν before the optimum.
    """
    status, known = pool.marks[STATUS], pool.marks[KNOWN]
    floor, ceiling = pool.facts[FLOOR], pool.facts[CEILING]
    best, number, most = NOBODY, NOBODY, nu + 1e-15
    for s in range(t):
        i = picks[s]
        if status[i] != NEGLECTED or ceiling[i] <= most:
            continue
        if known[i] != EXACT:
            make_exact(composition, pool, i)
        if floor[i] > most:
            best, number, most = i, s, floor[i]
    return best, number
