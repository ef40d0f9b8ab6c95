"""Proposition 1: every required fact once before any is repeated (paper §3.4, Appendix B.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempursuit_core import select
from mempursuit_core.tests.pools import Matrix, Problem, problems, unit


@dataclass
class Facts:
    """Unit vectors in fact clusters; label −1 is a distractor."""

    query: Matrix
    pool: Matrix
    label: np.ndarray

    def margin(self) -> float:
        """Return M of Eq. 17, after asserting the four conditions of Assumption B.1."""
        required = self.label >= 0
        G, b = self.pool @ self.pool.T, self.pool @ self.query
        h = self.label.max() + 1
        same = (self.label[:, None] == self.label) & required[:, None] & required
        across = ~same & required[:, None] & required
        # 1 and 2: the tightest ε, ρ and η these vectors meet.
        epsilon = np.sqrt(np.maximum(0.0, 2 - 2 * G[same].min()))
        rho = (G[across].max() + G[across].min()) / 2
        eta = (G[across].max() - G[across].min()) / 2
        # 3: balanced relevance.
        low, high = b[required].min(), b[required].max()
        assert h >= 2
        assert 0 <= rho < 1
        # 4: distractors are less relevant, and not further from the facts than facts are.
        if not required.all():
            gamma = low - b[~required].max()
            assert gamma > 2 * eta
            assert (G[np.ix_(~required, required)] >= rho - eta).all()
        return float((1 - rho) / (h - 1) - (high - low) - 2 * eta - 2 * epsilon)


def fact_clusters(seed: int, h: int, copies: int, distractors: int) -> Facts:
    """Build clusters around h equiangular centres, the query near their mean.

    Distractors lie along the centres' mean but away from the query's own direction, so they are
    close to the facts and less relevant.
    """
    rng = np.random.default_rng(seed)
    rho, wobble = rng.uniform(0.1, 0.5), 0.02 / h
    free = h * (1 + copies) + distractors + 4
    axes = np.linalg.qr(rng.normal(size=(free, free)))[0]
    shared, own, asked, noise = axes[0], axes[1 : h + 1], axes[h + 1], axes[h + 2 :]
    centres = np.sqrt(rho) * shared + np.sqrt(1 - rho) * own
    centres = unit(centres + 0.4 * asked)
    pool, label = [], []
    for fact in range(h):
        for copy in range(copies):
            pool.append(unit(centres[fact] + wobble * noise[fact * copies + copy]))
            label.append(fact)
    for i in range(distractors):
        pool.append(unit(shared - 0.1 * asked + wobble * noise[h * copies + i]))
        label.append(-1)
    order = rng.permutation(len(pool))
    query = unit(centres.mean(axis=0) + 1.5 * asked)
    return Facts(query, np.array(pool)[order], np.array(label)[order])


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 8),
    st.integers(1, 5),
    st.integers(0, 6),
    st.sampled_from([0.0, 1e-10, 1e-3]),
    st.sampled_from([np.float32, np.float64]),
)
def test_required_facts_come_first(
    seed: int, h: int, copies: int, distractors: int, ridge: float, dtype: type
) -> None:
    facts = fact_clusters(seed, h, copies, distractors)
    assert facts.margin() > 1e-3
    found = select(
        facts.query.astype(dtype), facts.pool.astype(dtype), len(facts.pool), ridge=ridge
    )
    first = facts.label[found.indices[:h]]
    assert sorted(first.tolist()) == list(range(h))


def test_plain_relevance_would_repeat_a_fact() -> None:
    """The clusters are such that the claim is not empty: the top h by cosine repeat a fact."""
    facts = fact_clusters(3, 4, 5, 3)
    top = facts.label[np.argsort(-(facts.pool @ facts.query))[:4]]
    assert len(set(top.tolist())) < 4


@given(problems(max_pool=20), st.floats(0.0, 0.3))
def test_near_the_hull_of_the_picks_utility_is_bounded(problem: Problem, delta: float) -> None:
    """Eq. 8: U(m) ≤ max over the picks of U + δ‖r‖ for every memory within δ of their hull."""
    found = select(problem.query, problem.pool, problem.k)
    picks = problem.pool[found.indices]
    r = problem.query - found.weights @ picks
    rng = np.random.default_rng(len(found))
    for _ in range(10):
        hull = rng.dirichlet(np.ones(len(picks))) @ picks
        m = hull + delta * unit(rng.normal(size=hull.shape))
        assert m @ r <= (picks @ r).max() + delta * found.residual_norms[-1] + 1e-9


@pytest.mark.parametrize("h", [2, 5])
def test_margin_notices_a_broken_assumption(h: int) -> None:
    facts = fact_clusters(0, h, 3, 0)
    facts.pool = unit(facts.pool + 0.05 * np.random.default_rng(0).normal(size=facts.pool.shape))
    assert facts.margin() < 0
