"""What must hold for every pursuit, on drawn problems (paper §3, Appendix B)."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mempursuit_core import Selection, select
from mempursuit_core.tests.pools import Matrix, Problem, problems
from mempursuit_core.tests.reference import objective, simplex_qp

RIDGES = st.sampled_from([1e-10, 1e-6, 1e-2])
DIALS = st.fixed_dictionaries(
    {
        "discount": st.sampled_from([1.0, 0.6, 0.0, "auto"]),
        "near_duplicate": st.sampled_from([None, 0.95, 0.6]),
        "ridge": RIDGES,
    }
)
PRECISIONS = st.sampled_from([np.float32, np.float64])


def run(problem: Problem, dtype: type, **dials: Any) -> tuple[Selection, Matrix, Matrix]:
    """Return the selection with the Gram matrix and b of its picks (what it was given, float64)."""
    query, pool = problem.query.astype(dtype), problem.pool.astype(dtype)
    found = select(query, pool, problem.k, **dials)
    M = pool.astype(np.float64)
    M /= np.linalg.norm(M, axis=1, keepdims=True)
    q = query.astype(np.float64)
    q /= np.linalg.norm(q)
    picks = M[found.indices]
    return found, picks @ picks.T, picks @ q


@given(problems(), DIALS, PRECISIONS)
def test_every_refit_is_on_the_simplex_and_meets_kkt(
    problem: Problem, dials: dict[str, Any], dtype: type
) -> None:
    found, G, b = run(problem, dtype, **dials)
    assert len(found) == min(problem.k, len(problem.pool))
    assert len(set(found.indices.tolist())) == len(found)
    for t in range(1, len(found) + 1):
        alpha = found.prefix(t).weights
        assert alpha.min() >= 0.0
        assert abs(alpha.sum() - 1.0) <= 1e-9
        slope = b[:t] - G[:t, :t] @ alpha - dials["ridge"] * alpha
        level = alpha @ slope
        assert slope.max() <= level + 1e-9
        np.testing.assert_allclose(slope[alpha > 1e-9], level, rtol=0, atol=1e-9)


@given(problems(), DIALS, PRECISIONS)
def test_prefixes_are_the_smaller_budgets(
    problem: Problem, dials: dict[str, Any], dtype: type
) -> None:
    query, pool = problem.query.astype(dtype), problem.pool.astype(dtype)
    whole = select(query, pool, problem.k, **dials)
    for k in range(1, len(whole) + 1):
        small, prefix = select(query, pool, k, **dials), whole.prefix(k)
        np.testing.assert_array_equal(small.indices, prefix.indices)
        for name in ("weights", "scores", "residual_norms", "gaps"):
            np.testing.assert_allclose(
                getattr(small, name), getattr(prefix, name), rtol=0, atol=1e-12, err_msg=name
            )


@given(problems(), DIALS, PRECISIONS, st.randoms(use_true_random=False))
def test_reordering_the_pool_only_relabels(
    problem: Problem, dials: dict[str, Any], dtype: type, random: Any
) -> None:
    order = list(range(len(problem.pool)))
    random.shuffle(order)
    query, pool = problem.query.astype(dtype), problem.pool.astype(dtype)
    found = select(query, pool, problem.k, **dials)
    # Once the residual has vanished the rest follow pool order, which a shuffle changes.
    settled = int(np.count_nonzero(found.residual_norms**2 > 1e-11)) + 1
    found = found.prefix(settled)
    shuffled = select(query, pool[order], len(found), **dials)
    assert [order[i] for i in shuffled.indices] == found.indices.tolist()
    np.testing.assert_allclose(shuffled.scores, found.scores, rtol=0, atol=1e-9)
    np.testing.assert_allclose(shuffled.residual_norms, found.residual_norms, rtol=0, atol=1e-9)


@given(problems(), DIALS, st.integers(-40, 40), st.integers(0, 2**32 - 1))
def test_lengths_of_the_inputs_do_not_matter(
    problem: Problem, dials: dict[str, Any], exponent: int, seed: int
) -> None:
    exponents = np.random.default_rng(seed).integers(-60, 60, size=(len(problem.pool), 1))
    found = select(problem.query, problem.pool, problem.k, **dials)
    # Powers of two are exact, so that even the last pick of a vanishing residual is the same.
    scaled = select(
        np.ldexp(problem.query, exponent), np.ldexp(problem.pool, exponents), problem.k, **dials
    )
    np.testing.assert_array_equal(scaled.indices, found.indices)
    np.testing.assert_allclose(scaled.weights, found.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(scaled.scores, found.scores, rtol=0, atol=1e-12)


@given(problems(wide=True), RIDGES, st.sampled_from([1.0, 0.6, "auto"]))
def test_certificate_brackets_the_optimum(problem: Problem, ridge: float, discount: Any) -> None:
    G, b = problem.pool @ problem.pool.T, problem.pool @ problem.query
    optimum = objective(G, b, ridge, simplex_qp(G, b, ridge))
    found = select(problem.query, problem.pool, problem.k, ridge=ridge, discount=discount)
    for t in range(1, len(found) + 1):
        alpha = np.zeros(len(problem.pool))
        alpha[found.indices[:t]] = found.prefix(t).weights
        excess = objective(G, b, ridge, alpha) - optimum
        assert -1e-10 <= excess <= found.gaps[t - 1] + 1e-10
    if len(found) == len(problem.pool):
        assert abs(excess) <= 1e-10
        assert found.gaps[-1] == 0.0


@given(problems(wide=True), RIDGES)
def test_nothing_changes_once_the_certificate_is_zero(problem: Problem, ridge: float) -> None:
    found = select(problem.query, problem.pool, len(problem.pool), ridge=ridge)
    closed = int(np.argmax(found.gaps == 0.0)) + 1
    at_close = found.prefix(closed)
    np.testing.assert_allclose(found.weights[:closed], at_close.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.weights[closed:], 0.0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        found.residual_norms[closed:], at_close.residual_norms[-1], rtol=0, atol=1e-9
    )
    assert (np.diff(found.scores[closed:]) <= 1e-12).all()


@given(problems())
def test_residual_norms_are_of_the_reported_weights(problem: Problem) -> None:
    found = select(problem.query, problem.pool, problem.k)
    for t in range(1, len(found) + 1):
        prefix = found.prefix(t)
        r = problem.query - prefix.weights @ problem.pool[prefix.indices]
        np.testing.assert_allclose(prefix.residual_norms[-1], np.linalg.norm(r), rtol=0, atol=1e-9)
        if t < len(found):
            utility = problem.pool[found.indices[t]] @ r
            np.testing.assert_allclose(found.scores[t], utility, rtol=0, atol=1e-9)


@given(problems(), PRECISIONS)
def test_no_discount_is_plain_relevance(problem: Problem, dtype: type) -> None:
    query, pool = problem.query.astype(dtype), problem.pool.astype(dtype)
    found = select(query, pool, problem.k, discount=0.0)
    if len(pool) > 1 and found.residual_norms.min() ** 2 <= 1e-11:
        return  # a vanished residual brings pool order
    M = pool.astype(np.float64)
    cosine = M @ query.astype(np.float64) / np.linalg.norm(M, axis=1)
    order = np.argsort(-cosine, kind="stable")[: len(found)]
    np.testing.assert_array_equal(found.indices, order)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.6, "auto"]))
def test_float32_pools_get_the_picks_of_their_float64_values(seed: int, discount: Any) -> None:
    """Memories a few float32 steps apart: only exact arithmetic tells which is better."""
    rng = np.random.default_rng(seed)
    d = 64
    base = rng.normal(size=(12, d))
    pool = np.repeat(base, 6, axis=0).astype(np.float32)
    pool *= 1 + np.float32(2**-22) * rng.integers(-2, 3, size=pool.shape).astype(np.float32)
    query = (base[:4].sum(axis=0) + rng.normal(size=d)).astype(np.float32)
    narrow = select(query, pool, 30, discount=discount)
    wide = select(query.astype(np.float64), pool.astype(np.float64), 30, discount=discount)
    np.testing.assert_array_equal(narrow.indices, wide.indices)
