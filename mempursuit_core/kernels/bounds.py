"""Finding the best candidate without reading every memory exactly.

Every utility is known to lie between a floor and a ceiling. When the residual moves, both give way
by as much as it can have changed any of them; reading a candidate draws them together, first by
its eight-bit code, then in the pool's precision, at last in float64. Each is read only as long as
its ceiling reaches the best floor, so the winner is the one exact arithmetic finds.

What is known of the candidates lies in a few tables with named rows, because every further array
costs numba's compiler and every call time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.codes import HALF, encode_factor, likely_step
from mempursuit_core.kernels.jit import borrowing, names
from mempursuit_core.kernels.lanes import LONGEST, byte_products
from mempursuit_core.kernels.scan import movement, product

NOBODY = cast(int, np.int64(-1))
# STATUS of a candidate. NEGLECTED picks had U ≤ ν, so they are no members of the composition;
# WAITING are near-duplicates of a pick.
FREE, WAITING, SELECTED, NEGLECTED = names(4)
# How well its utility is KNOWN for the current residual; EXACT: floor = ceiling.
MOVED, CODED, SCANNED, EXACT = names(4)
# Rows of Pool.facts: 1/‖m‖, cosine to the query, product of the unit memory with the centre and
# distance from it, step of its code, the bounds of its utility, and a number to work with.
INVERSE, B, COMMON, APART, STEP, FLOOR, CEILING, WORK = names(8)
# Rows of Pool.marks; CLOSE and UNREAD are lists: who may be the best, whose code is to be read.
STATUS, KNOWN, CLOSE, UNREAD = names(4)
# Rows of Pool.vectors and of Residual.vectors.
QUERY, CENTRE = names(2)
SHIFT, OLD, R = names(3)
# Pool.numbers: a likely winner to read first; no code's vector is longer than EXTENT; a scan of
# unit vectors errs by ROUNDING at most, and one number of the pool's precision by EPSILON.
LIKELY, EXTENT, ROUNDING, EPSILON = names(4)
# Residual.numbers, all of the shift: step of its code, 128 times the code's sum, product with the
# centre, and how much a code's step, the shift's own and scans can be off.
SCALE, SHIFTED, ALONG, SPREAD, LOST, FUZZ = names(6)


class Pool(NamedTuple):
    """The candidates and what is known of them; P candidates of dimension d."""

    M: NDArray[Any]  # (P, d) rows as handed in
    q: NDArray[Any]  # (d,) the query, unit length, float64
    vectors: NDArray[Any]  # (3, d) in the pool's precision, the last to work in
    codes: NDArray[Any]  # (P, d) bytes
    facts: NDArray[Any]  # (8, P + 4) float64
    marks: NDArray[Any]  # (4, P + 4) int64
    numbers: NDArray[Any]  # (4,) float64


class Residual(NamedTuple):
    """r = q − q̂ (paper Eq. 3) as scans use it. A code carries the shift q̂ − centre instead of r:

    U(m) = mᵀq − mᵀcentre − centreᵀshift − (m − centre)ᵀshift, and only the last term is coded.
    """

    vectors: NDArray[Any]  # (3, d) in the pool's precision
    bytes: NDArray[Any]  # (2, d) the shift's code, signed; ones
    numbers: NDArray[Any]  # (6,) float64


@borrowing
def give_way(pool: Pool, residual: Residual, terms: int) -> None:
    """Take in a new shift, made of so many terms: widen every utility's bounds by what it moved."""
    P, d = pool.M.shape
    centre, shift = pool.vectors[CENTRE], residual.vectors[SHIFT]
    far, along, square, common = movement(residual.vectors[OLD], shift, centre)
    fuzz = 8.0 * pool.numbers[ROUNDING] + 4.0 * (terms + 8.0) * pool.numbers[EPSILON]
    # U moves by −centreᵀΔ − (m − centre)ᵀΔ.
    distance, apart = np.sqrt(far), pool.facts[APART]
    floor, ceiling, known = pool.facts[FLOOR], pool.facts[CEILING], pool.marks[KNOWN]
    for i in range(P):
        sideways = distance * apart[i] + fuzz
        floor[i] -= along + sideways
        ceiling[i] -= along - sideways
        known[i] = MOVED
    length = np.sqrt(square)
    step, total = encode_factor(shift, likely_step(length, d), residual.bytes)
    numbers = residual.numbers
    numbers[SCALE] = step
    numbers[SHIFTED] = 128.0 * total
    numbers[ALONG] = common
    numbers[SPREAD] = HALF * np.sqrt(d) * length
    numbers[LOST] = HALF * np.sqrt(d) * step * pool.numbers[EXTENT] + 2.0 * fuzz
    numbers[FUZZ] = fuzz
    if d > LONGEST:  # all that is left to say is |m − centre|·|shift|
        numbers[SCALE], numbers[SPREAD] = 0.0, 0.0
        numbers[LOST] = pool.numbers[EXTENT] * length + 2.0 * fuzz
    query, r = pool.vectors[QUERY], residual.vectors[R]
    for j in range(d):
        r[j] = query[j] - (centre[j] + shift[j])


@borrowing
def best_candidate(
    pool: Pool, residual: Residual, among: int, wb: float, wu: float
) -> tuple[int, int]:
    """Return how many may have the largest wb·b + wu·U, and the first of them, or NOBODY.

    Only candidates with status ≤ `among` count. They are in the list CLOSE, in pool order; if they
    are more than one, only exact values can tell.
    """
    b, floor, ceiling = pool.facts[B], pool.facts[FLOOR], pool.facts[CEILING]
    status, known = pool.marks[STATUS], pool.marks[KNOWN]
    close, unread = pool.marks[CLOSE], pool.marks[UNREAD]
    hopeful = int(pool.numbers[LIKELY])
    if hopeful == NOBODY or status[hopeful] > among:
        hopeful = highest_ceiling(pool, among, wb, wu)
    if hopeful == NOBODY:
        return 0, NOBODY
    scan(pool, residual, hopeful)
    slack = 2.0 * wb * pool.numbers[ROUNDING]
    front = wb * b[hopeful] + wu * floor[hopeful] - slack
    n, new = 0, 0
    for i in range(pool.M.shape[0]):
        near = (status[i] <= among) & (wb * b[i] + wu * ceiling[i] >= front)
        close[n] = unread[new] = i
        n += near
        new += near & (known[i] == MOVED)
    if n > 1:
        read_codes(pool, residual, new)
        n, hopeful = keep_close(pool, n, slack, wb, wu)
    if n > 1:
        scan(pool, residual, hopeful)
        n, hopeful = keep_close(pool, n, slack, wb, wu)
    if n > 1:
        for k in range(n):
            scan(pool, residual, close[k])
        n, hopeful = keep_close(pool, n, slack, wb, wu)
    return n, close[0]


@borrowing
def highest_ceiling(pool: Pool, among: int, wb: float, wu: float) -> int:
    """Return the candidate with the largest bound of its score, or NOBODY."""
    b, ceiling, status = pool.facts[B], pool.facts[CEILING], pool.marks[STATUS]
    best, most = NOBODY, -np.inf
    for i in range(pool.M.shape[0]):
        if wb * b[i] + wu * ceiling[i] > most and status[i] <= among:
            best, most = i, wb * b[i] + wu * ceiling[i]
    return best


@borrowing
def reached_by(pool: Pool, residual: Residual, wanted: int) -> float:
    """Return a utility that at least so many of those left are known to reach, by their codes."""
    floor, status = pool.facts[FLOOR], pool.marks[STATUS]
    unread, n = pool.marks[UNREAD], 0
    for i in range(pool.M.shape[0]):
        unread[n] = i
        n += (status[i] <= WAITING) & (pool.marks[KNOWN, i] == MOVED)
    read_codes(pool, residual, n)
    low, high = -4.0, 4.0
    for _ in range(16):
        middle, count = (low + high) / 2.0, 0
        for i in range(pool.M.shape[0]):
            count += (status[i] <= WAITING) & (floor[i] >= middle)
        low, high = (middle, high) if count >= wanted else (low, middle)
    return low


@borrowing
def keep_close(pool: Pool, n: int, slack: float, wb: float, wu: float) -> tuple[int, int]:
    """Keep those of the first n in CLOSE whose ceiling reaches the best floor.

    Return how many they are and whose that floor is, and note the next as a likely winner.
    """
    b, floor, ceiling = pool.facts[B], pool.facts[FLOOR], pool.facts[CEILING]
    close = pool.marks[CLOSE]
    best, rival, front, second = NOBODY, NOBODY, -np.inf, -np.inf
    for k in range(n):
        i = close[k]
        score = wb * b[i] + wu * floor[i]
        if score > second:
            if score > front:
                rival, second, best, front = best, front, i, score
            else:
                rival, second = i, score
    pool.numbers[LIKELY] = rival
    kept = 0
    for k in range(n):
        i = close[k]
        close[kept] = i
        kept += wb * b[i] + wu * ceiling[i] >= front - slack
    return kept, best


@borrowing
def read_codes(pool: Pool, residual: Residual, n: int) -> None:
    """Bound the utilities of the first n in UNREAD by their codes."""
    codes, unread, work = pool.codes, pool.marks[UNREAD], pool.facts[WORK]
    factor = residual.bytes[0]
    for k in range(n, n + 3):
        unread[k] = unread[n - 1]  # filling up the last four
    for k in range(0, n, 4):
        work[k], work[k + 1], work[k + 2], work[k + 3] = byte_products(
            codes, unread[k], unread[k + 1], unread[k + 2], unread[k + 3], factor
        )
    b, common, step = pool.facts[B], pool.facts[COMMON], pool.facts[STEP]
    floor, ceiling, known = pool.facts[FLOOR], pool.facts[CEILING], pool.marks[KNOWN]
    numbers = residual.numbers
    scale, shifted, along = numbers[SCALE], numbers[SHIFTED], numbers[ALONG]
    spread, lost = numbers[SPREAD], numbers[LOST]
    for k in range(n):
        i = unread[k]
        value = b[i] - common[i] - along - step[i] * scale * (work[k] - shifted)
        off = step[i] * spread + lost
        floor[i] = value - off
        ceiling[i] = value + off
        known[i] = CODED


@borrowing
def scan(pool: Pool, residual: Residual, i: int) -> None:
    """Read candidate i in the pool's precision, unless it is known as well already."""
    if pool.marks[KNOWN, i] >= SCANNED:
        return
    value = product(pool.M, i, residual.vectors[R]) * pool.facts[INVERSE, i]
    pool.facts[FLOOR, i] = value - residual.numbers[FUZZ]
    pool.facts[CEILING, i] = value + residual.numbers[FUZZ]
    pool.marks[KNOWN, i] = SCANNED
