"""Dials beyond the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempursuit_core import PRESETS, Dials, preset, select
from mempursuit_core.tests.pools import Problem, clustered, problems, unit


def scores_by_formula(query: Any, pool: Any, picks: Any, alphas: Any, gammas: Any) -> list[float]:
    """Return b_i − γ_t Σ_j G_ij α_j of each pick, from its prefix's own weights."""
    return [
        float(pool[i] @ query - gammas[t] * (pool[i] @ (alphas[t] @ pool[picks[:t]])))
        for t, i in enumerate(picks)
    ]


@given(problems(), st.sampled_from([0.0, 0.3, 0.8]))
def test_discount_formula(problem: Problem, gamma: float) -> None:
    found = select(problem.query, problem.pool, problem.k, discount=gamma)
    alphas = [np.zeros(0)] + [found.prefix(t).weights for t in range(1, len(found))]
    expected = scores_by_formula(
        problem.query, problem.pool, found.indices, alphas, [gamma] * len(found)
    )
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=1e-9)


@given(problems())
def test_auto_discount_formula(problem: Problem) -> None:
    found = select(problem.query, problem.pool, problem.k, discount="auto")
    share = min(max(0.75 * (problem.pool @ problem.query).max(), 0.0), 1.0)
    gammas = [min(1.0, t / 8) * share for t in range(len(found))]
    alphas = [np.zeros(0)] + [found.prefix(t).weights for t in range(1, len(found))]
    expected = scores_by_formula(problem.query, problem.pool, found.indices, alphas, gammas)
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=1e-9)


def test_auto_discount_of_an_opposed_pool_is_none() -> None:
    """max b < 0: the share is clipped to 0, so plain relevance decides."""
    rng = np.random.default_rng(2)
    shared = unit(rng.normal(size=20))
    pool = unit(rng.normal(size=(15, 20)) + 8 * shared)
    found = select(-shared, pool, 15, discount="auto")
    b = -pool @ shared
    assert b.max() < 0
    np.testing.assert_array_equal(found.indices, np.argsort(-b, kind="stable"))
    np.testing.assert_allclose(found.scores, np.sort(b)[::-1], rtol=0, atol=1e-12)


@given(problems(), st.sampled_from([0.2, 0.6, 0.9, 0.99]), st.sampled_from([1.0, 0.5, "auto"]))
def test_near_duplicates_wait(problem: Problem, tau: float, discount: Any) -> None:
    pool = problem.pool
    found = select(problem.query, pool, len(pool), near_duplicate=tau, discount=discount)
    picks, G = found.indices.tolist(), pool @ pool.T
    waiting = False
    for t in range(1, len(picks)):
        left = picks[t:]
        fresh = [i for i in left if G[i, picks[:t]].max() < tau]
        if fresh:
            assert not waiting
            assert picks[t] in fresh
        waiting = not fresh
    if waiting and found.residual_norms.min() > 1e-5 and found.gaps[t - 1] == 0.0:
        closed = int(np.argmax(found.gaps == 0))
        start = max(
            closed + 1, 8, sum(G[i, picks[:s]].max() < tau for s, i in enumerate(picks) if s)
        )
        assert (np.diff(found.scores[start + 1 :]) <= 1e-12).all()


def test_waiting_memories_come_in_score_order() -> None:
    query = unit([1.0, 1.0, 0.2])
    pool = unit(
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.11], [1.0, 0.0, 0.1], [0.0, 1.0, 0.1], [0.1, 0.2, 1]]
    )
    found = select(query, pool, 5, near_duplicate=0.95)
    picks = found.indices.tolist()
    assert sorted(picks[:3]) != [0, 1, 2]
    late = picks[3:]
    assert set(late) < {0, 1, 2}
    assert found.scores[3] >= found.scores[4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("discount", [1.0, "auto"])
def test_threshold_one_holds_back_exact_copies_only(dtype: type, discount: Any) -> None:
    query, base = clustered(8, 12, 40, spread=0.6)
    query, base = query.astype(dtype), base.astype(dtype)
    pool = np.concatenate([base, base * dtype(2), base])
    found = select(query, pool, 36, near_duplicate=1.0, discount=discount)
    assert sorted(i % 12 for i in found.indices[:12].tolist()) == list(range(12))
    alone = select(query, base, 12, discount=discount)
    assert (found.indices[:12] % 12).tolist() == alone.indices.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threshold_minus_one_makes_everything_wait(dtype: type) -> None:
    """Every candidate repeats the first pick, so the dial changes nothing."""
    query, pool = clustered(9, 30, 40)
    query, pool = query.astype(dtype), pool.astype(dtype)
    held, free = select(query, pool, 30, near_duplicate=-1.0), select(query, pool, 30)
    np.testing.assert_array_equal(held.indices, free.indices)
    np.testing.assert_allclose(held.scores, free.scores, rtol=0, atol=1e-12)


@given(problems(), st.sampled_from([1.0, 0.5, "auto"]), st.sampled_from([None, 0.9]))
def test_gamma_of_one_is_the_paper(problem: Problem, discount: Any, tau: float | None) -> None:
    """Weights, residuals and certificates depend on what was picked, never on the formula."""
    found = select(problem.query, problem.pool, problem.k, discount=discount, near_duplicate=tau)
    picks = problem.pool[found.indices]
    for t in range(1, len(found) + 1):
        alpha = found.prefix(t).weights
        r = problem.query - alpha @ picks[:t]
        U = problem.pool @ r
        nu = alpha @ U[found.indices[:t]] - 1e-10 * alpha @ alpha
        U[found.indices[:t]] = -np.inf
        np.testing.assert_allclose(found.gaps[t - 1], max(0.0, U.max() - nu), rtol=0, atol=1e-9)


def test_presets() -> None:
    assert PRESETS["paper"] == Dials(discount=1.0, near_duplicate=None, ridge=1e-10, stop=None)
    assert PRESETS["auto"] == Dials(discount="auto", near_duplicate=0.95, ridge=1e-10, stop=None)
    assert preset("auto") is PRESETS["auto"]
    with pytest.raises(ValueError, match=r"preset must be one of \['auto', 'paper'\], got 'best'"):
        preset("best")


def test_dials_override_replaces_only_what_is_given() -> None:
    dials = preset("auto").override(discount=0.5)
    assert dials == Dials(discount=0.5, near_duplicate=0.95)
    assert preset("auto").override() == preset("auto")
