"""What the kernels believe of the utilities is true: every one lies between its bounds."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mempursuit_core.kernels import bounds, composition, pursue
from mempursuit_core.kernels.bounds import (
    APART,
    CEILING,
    CENTRE,
    EXTENT,
    FLOOR,
    LOST,
    SCALE,
    SELECTED,
    SPREAD,
    STATUS,
    STEP,
    UNREAD,
    WAITING,
)
from mempursuit_core.kernels.codes import HALF
from mempursuit_core.kernels.composition import ALPHA, MEMBERS, ROWS

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="slow as plain Python")


@numba.njit
def bounds_along_the_path(M: Any, q: Any, steps: int) -> Any:
    """Return the bounds after each refit before any reading, then of codes, and rows and α."""
    P, d = M.shape
    pool, usable = pursue.read_pool(M, q, np.empty(M.size, np.uint8))
    members = composition.empty_composition(steps, d)
    residual = pursue.whole_query(pool)
    found = np.zeros((steps, 4, P))
    rows, alphas = np.zeros((steps, steps), np.int64), np.zeros((steps, steps))
    for t in range(steps):
        best = composition.leader(members, pool, residual, WAITING, 0.0, 1.0)
        pool.marks[STATUS, best] = SELECTED
        composition.add_member(members, pool, best, t, 1e-10)
        composition.follow(members, pool, residual)
        found[t, 0], found[t, 1] = pool.facts[FLOOR, :P], pool.facts[CEILING, :P]
        for i in range(P):
            pool.marks[UNREAD, i] = i
        bounds.read_codes(pool, residual, P)
        found[t, 2], found[t, 3] = pool.facts[FLOOR, :P], pool.facts[CEILING, :P]
        n = members.counts[MEMBERS]
        rows[t, :n], alphas[t, :n] = members.lists[ROWS, :n], members.reals[ALPHA, :n]
    return usable, found, rows, alphas


@numba.njit
def codes_and_their_limits(M: Any, q: Any) -> Any:
    """Return the pool's codes after the first refit, the shift's, and what is claimed of both."""
    pool, _ = pursue.read_pool(M, q, np.empty(M.size, np.uint8))
    members = composition.empty_composition(1, M.shape[1])
    residual = pursue.whole_query(pool)
    best = composition.leader(members, pool, residual, WAITING, 0.0, 1.0)
    composition.add_member(members, pool, best, 0, 1e-10)
    composition.follow(members, pool, residual)
    return (
        best,
        pool.vectors[CENTRE],
        pool.codes,
        pool.facts[STEP],
        pool.facts[APART],
        pool.numbers[EXTENT],
        residual.bytes[0],
        residual.numbers,
    )


def drawn(kind: str, seed: int, P: int, d: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw a query and a pool; `kind` says what makes the pool hard to code."""
    rng = np.random.default_rng(seed)
    pool = rng.normal(size=(P, d)) + rng.normal(size=d)
    query = pool[:3].sum(axis=0) + rng.normal(size=d)
    if kind == "one number dwarfs the others":
        pool[:, 3] += 30.0
        query[3] += 30.0
    elif kind == "heavy tails":
        pool, query = pool**5, query**5
    elif kind == "nearly one memory":
        pool = pool[0] + 1e-4 * pool
    elif kind == "single numbers":
        pool = np.eye(P, d) + 1e-3 * pool
    elif kind == "an outlier":
        pool[P // 2] = 0.0
        pool[P // 2, 5] = 1.0
    elif kind == "lengths":
        pool *= 10.0 ** rng.uniform(-4, 4, size=(P, 1))
    return query, pool


KINDS = [
    "plain", "one number dwarfs the others", "heavy tails", "nearly one memory", "single numbers",
    "an outlier", "lengths",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(6, 40),
    st.sampled_from([32, 64, 256]),
    st.sampled_from([np.float32, np.float64]),
)
def test_every_utility_lies_between_its_bounds(
    kind: str, seed: int, P: int, d: int, dtype: type
) -> None:
    query, pool = (values.astype(dtype) for values in drawn(kind, seed, P, d))
    pool.flags.writeable = False
    usable, found, rows, alphas = bounds_along_the_path(pool, query.astype(np.float64), 6)
    assert usable
    M, q = pool.astype(np.float64), query.astype(np.float64)
    M /= np.linalg.norm(M, axis=1, keepdims=True)
    q /= np.linalg.norm(q)
    for t in range(len(found)):
        utility = M @ (q - alphas[t] @ M[rows[t]])
        floor, ceiling, coded_floor, coded_ceiling = found[t]
        for low, high in ((floor, ceiling), (coded_floor, coded_ceiling)):
            assert (low <= utility + 1e-12).all()
            assert (utility <= high + 1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_as_close_as_claimed(kind: str, dtype: type) -> None:
    """The bounds of utilities leave room that random errors never use; these do not."""
    query, pool = (values.astype(dtype) for values in drawn(kind, 5, 40, 256))
    pool.flags.writeable = False
    best, centre, codes, step, apart, extent, factor, numbers = codes_and_their_limits(
        pool, query.astype(np.float64)
    )
    M, centre = pool.astype(np.float64), centre.astype(np.float64)
    M /= np.linalg.norm(M, axis=1, keepdims=True)
    step, apart = step[:40, None], apart[:40]
    away = M - centre
    coded = step * (codes.astype(np.float64) - 128.0)
    slip = 8 * np.finfo(dtype).eps
    # A length may be taken from the memory before, if it is the same up to a scan's rounding.
    guessed = 4 * np.finfo(dtype).eps / 2 * (256 / 16 + 16) * np.abs(M)
    assert (np.abs(away - coded) <= HALF * step + guessed + slip).all()
    assert (np.linalg.norm(away, axis=1) <= apart + slip).all()
    assert (apart <= np.linalg.norm(away, axis=1) + 4e-3).all()
    assert np.linalg.norm(coded, axis=1).max() <= extent + 16 * slip
    shift = M[best] - centre
    off = np.abs(shift - numbers[SCALE] * factor.view(np.int8).astype(np.float64))
    assert off.max() <= HALF * numbers[SCALE] + slip
    # What the errors of either can do to a product, at their worst (Cauchy–Schwarz).
    worst = HALF * np.sqrt(256)
    assert numbers[SPREAD] >= 0.999 * worst * np.linalg.norm(shift)
    assert numbers[LOST] >= worst * numbers[SCALE] * extent


def test_codes_are_worth_reading() -> None:
    """Bounds that say nothing would be true as well."""
    query, pool = drawn("plain", 1, 40, 256)
    pool = pool.astype(np.float32)
    pool.flags.writeable = False
    _, found, _, _ = bounds_along_the_path(pool, query, 6)
    width = found[:, 3] - found[:, 2]
    assert width.max() < 0.06
    assert np.median(found[:, 1] - found[:, 0]) > 4 * np.median(width)
