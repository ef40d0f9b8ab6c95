"""The picks that may carry weight, and everything the refit knows about them.

A pick becomes a *member* when it can lower the objective, U > ν; the others keep weight 0 and are
never looked at by the refit. There are as many refits as members at most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.bounds import (
    CEILING,
    CENTRE,
    CLOSE,
    EXACT,
    FLOOR,
    INVERSE,
    KNOWN,
    NEGLECTED,
    NOBODY,
    SHIFT,
    STATUS,
    WAITING,
    B,
    Pool,
    Residual,
    best_candidate,
    give_way,
    reached_by,
)
from mempursuit_core.kernels.jit import borrowing, compiled, names
from mempursuit_core.kernels.lanes import exact_introduction, exact_product
from mempursuit_core.kernels.refit import refit
from mempursuit_core.kernels.scan import add_four, copy, squared_norm

# Composition.counts: members, members with weight, the candidate whose cosines are in ROW.
MEMBERS, WEIGHTY, PREPARED = names(3)
# Composition.lists: a member's pool index, which pick it is, the corral (see refit).
ROWS, PICKS, CORRAL = names(3)
# Composition.reals: weights, cosines to the query, cosines of candidate PREPARED to the members,
# and four rows for the refit to work in.
ALPHA, TO_QUERY, ROW, SCRATCH = names(4)
# Composition.matrices: the members' cosines, the refit's factor, and α after refit s in row s.
G, L, PATH = names(3)
# Below this ‖r‖² the Gram matrix no longer knows it well enough.
SMALL_LOSS = 1e-6
# Two copies of one memory have cosine 1 up to rounding, and must count as such.
COSINE_TOLERANCE = 1e-12


class Composition(NamedTuple):
    """Tables with room for c members; their rows are named above."""

    counts: NDArray[Any]  # (3,) int64
    lists: NDArray[Any]  # (3, c) int64
    reals: NDArray[Any]  # (7, c) float64
    matrices: NDArray[Any]  # (3, c, c) float64
    x: NDArray[Any]  # (d,) float64, overwritten


@compiled
def empty_composition(capacity: int, d: int) -> Composition:
    """Return a Composition without members."""
    counts = np.zeros(3, np.int64)
    counts[PREPARED] = NOBODY
    return Composition(
        counts,
        np.empty((3, capacity), np.int64),
        np.zeros((7, capacity)),
        np.empty((3, capacity, capacity)),
        np.empty(d),
    )


@compiled
def with_twice_the_room(c: Composition) -> Composition:
    """Return a copy for more members."""
    n = c.counts[MEMBERS]
    wide = empty_composition(2 * c.lists.shape[1], c.x.shape[0])
    # Loops, because slice assignments are what numba compiles slowest.
    for i in range(3):
        wide.counts[i] = c.counts[i]
        for j in range(n):
            wide.lists[i, j] = c.lists[i, j]
            for k in range(n):
                wide.matrices[i, j, k] = c.matrices[i, j, k]
    for i in range(7):
        for j in range(n):
            wide.reals[i, j] = c.reals[i, j]
    wide.counts[PREPARED] = NOBODY
    return wide


@borrowing
def make_exact(c: Composition, pool: Pool, i: int) -> None:
    """Bring b, length and utility of candidate i to float64; leave its cosines in ROW.

    U = b − Σ G α (paper Eq. 4), so the row that told the utility is the one the refit needs.
    """
    M, inverse, rows = pool.M, pool.facts[INVERSE], c.lists[ROWS]
    row, alpha = c.reals[ROW], c.reals[ALPHA]
    n = c.counts[MEMBERS]
    along, square = exact_introduction(M[i], pool.q, c.x)
    inverse[i] = 1.0 / np.sqrt(square)
    utility = pool.facts[B, i] = along * inverse[i]
    for j in range(n):
        row[j] = exact_product(M[rows[j]], c.x) * inverse[i] * inverse[rows[j]]
        utility -= row[j] * alpha[j]
    pool.facts[FLOOR, i] = pool.facts[CEILING, i] = utility
    pool.marks[KNOWN, i] = EXACT
    c.counts[PREPARED] = i


@borrowing
def leader(c: Composition, pool: Pool, residual: Residual, among: int, wb: float, wu: float) -> int:
    """Return the candidate with the largest wb·b + wu·U, the smaller index on ties, or NOBODY.

    Only candidates with status ≤ `among` count. The winner is exact after this.
    """
    n, best = best_candidate(pool, residual, among, wb, wu)
    most = -np.inf
    for k in range(n):
        i = pool.marks[CLOSE, k]
        if pool.marks[KNOWN, i] != EXACT:
            make_exact(c, pool, i)
        score = wb * pool.facts[B, i] + wu * pool.facts[FLOOR, i]
        if score > most:
            best, most = i, score
    return best


@borrowing
def add_member(c: Composition, pool: Pool, i: int, pick: int, ridge: float) -> None:
    """Let candidate i join, and refit the weights (paper Eq. 6)."""
    gram, path, row, alpha = c.matrices[G], c.matrices[PATH], c.reals[ROW], c.reals[ALPHA]
    if c.counts[PREPARED] != i:
        make_exact(c, pool, i)
    n = c.counts[MEMBERS]
    for j in range(n):
        gram[n, j] = row[j]
        gram[j, n] = row[j]
    gram[n, n] = 1.0
    c.lists[ROWS, n] = i
    c.lists[PICKS, n] = pick
    c.reals[TO_QUERY, n] = pool.facts[B, i]
    c.counts[MEMBERS] = n + 1
    c.counts[PREPARED] = NOBODY
    c.counts[WEIGHTY] = refit(
        gram, c.reals[TO_QUERY], n + 1, ridge, alpha, c.lists[CORRAL], c.counts[WEIGHTY],
        c.matrices[L], n, c.reals[SCRATCH:],
    )  # fmt: skip
    for j in range(n + 1):
        path[n, j] = alpha[j]


@borrowing
def loss_and_level(c: Composition, pool: Pool, ridge: float) -> tuple[float, float]:
    """Return ‖r‖² (paper Eq. 3) and ν = Σ α_j U_j − λ‖α‖² (Eq. 14)."""
    gram, b, alpha, corral = c.matrices[G], c.reals[TO_QUERY], c.reals[ALPHA], c.lists[CORRAL]
    size = c.counts[WEIGHTY]
    loss, nu = 1.0, 0.0
    for k in range(size):
        j = corral[k]
        s = 0.0
        for m in range(size):
            s += gram[j, corral[m]] * alpha[corral[m]]
        loss += alpha[j] * (s - 2.0 * b[j])
        nu += alpha[j] * (b[j] - s - ridge * alpha[j])
    if loss < SMALL_LOSS:
        exact_residual(c, pool, c.x)
        loss = squared_norm(c.x)
    return loss, nu


@borrowing
def follow(c: Composition, pool: Pool, residual: Residual) -> None:
    """Let the residual, and what is known of the utilities, follow the weights."""
    shift, centre = residual.vectors[SHIFT], pool.vectors[CENTRE]
    for j in range(shift.shape[0]):
        shift[j] = -centre[j]
    add_members(c, pool, 1.0, shift)
    give_way(pool, residual, c.counts[WEIGHTY])


@borrowing
def exact_residual(c: Composition, pool: Pool, r: NDArray[Any]) -> None:
    """Set r to q − Σ α m in float64."""
    c.counts[PREPARED] = NOBODY  # x may be overwritten
    copy(pool.q, r)
    add_members(c, pool, -1.0, r)


@borrowing
def add_members(c: Composition, pool: Pool, sign: float, v: NDArray[Any]) -> None:
    """Add sign · Σ α m to v, four members at a time; the last four are filled up with 0 · m."""
    M, inverse = pool.M, pool.facts[INVERSE]
    rows, corral, alpha = c.lists[ROWS], c.lists[CORRAL], c.reals[ALPHA]
    size = c.counts[WEIGHTY]
    for start in range(0, size, 4):
        j0 = corral[start]
        j1, j2, j3 = j0, j0, j0
        w0, w1, w2, w3 = sign * alpha[j0] * inverse[rows[j0]], 0.0, 0.0, 0.0
        if start + 1 < size:
            j1 = corral[start + 1]
            w1 = sign * alpha[j1] * inverse[rows[j1]]
        if start + 2 < size:
            j2 = corral[start + 2]
            w2 = sign * alpha[j2] * inverse[rows[j2]]
        if start + 3 < size:
            j3 = corral[start + 3]
            w3 = sign * alpha[j3] * inverse[rows[j3]]
        add_four(M, rows[j0], rows[j1], rows[j2], rows[j3], (w0, w1, w2, w3), v)


@borrowing
def make_best_exact(
    c: Composition, pool: Pool, residual: Residual, wanted: int, r: NDArray[Any]
) -> None:
    """Bring so many of those left to float64, the best by utility and whoever may be among them.

    r (d,) float64 becomes the residual of the last refit.
    """
    least = reached_by(pool, residual, wanted)
    inverse, status, ceiling = pool.facts[INVERSE], pool.marks[STATUS], pool.facts[CEILING]
    exact_residual(c, pool, r)
    for i in range(pool.M.shape[0]):
        if status[i] <= WAITING and ceiling[i] >= least:
            missing, square = exact_introduction(pool.M[i], r, c.x)
            inverse[i] = 1.0 / np.sqrt(square)
            pool.facts[FLOOR, i] = ceiling[i] = missing * inverse[i]
            pool.marks[KNOWN, i] = EXACT


@borrowing
def repeats_a_pick(
    c: Composition, pool: Pool, i: int, picks: NDArray[Any], t: int, threshold: float
) -> bool:
    """Tell whether candidate i has a cosine ≥ `threshold` to one of the first t picks."""
    if c.counts[PREPARED] != i:
        make_exact(c, pool, i)
    threshold -= COSINE_TOLERANCE
    for j in range(c.counts[MEMBERS]):
        if c.reals[ROW, j] >= threshold:
            return True
    inverse = pool.facts[INVERSE]
    for s in range(t):
        j = picks[s]
        if pool.marks[STATUS, j] != NEGLECTED:
            continue
        if exact_product(pool.M[j], c.x) * inverse[i] * inverse[j] >= threshold:
            return True
    return False
