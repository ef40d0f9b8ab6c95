"""Adaptive stopping (paper Eq. 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempursuit_core import AdaptiveStop, select
from mempursuit_core.tests.pools import Problem, clustered, problems


def stopped_after(losses: list[float], tolerance: float, patience: int) -> int:
    """Return how many picks Eq. 7 allows, with L_0 = 1 (the query alone)."""
    previous, still = 1.0, 0
    for t, loss in enumerate(losses, 1):
        gain = (previous - loss) / max(previous, 1e-12)
        still = still + 1 if gain <= tolerance else 0
        if still == patience:
            return t
        previous = loss
    return len(losses)


@given(
    problems(),
    st.sampled_from([0.0, 1e-5, 1e-2, 0.3]),
    st.integers(1, 4),
    st.sampled_from([1.0, "auto"]),
)
def test_stops_where_the_equation_says(
    problem: Problem, tolerance: float, patience: int, discount: Any
) -> None:
    whole = select(problem.query, problem.pool, problem.k, discount=discount)
    found = select(
        problem.query,
        problem.pool,
        problem.k,
        discount=discount,
        stop=AdaptiveStop(tolerance, patience),
    )
    losses = (whole.residual_norms**2).tolist()
    # An equal loss on both sides of the tolerance's edge is a matter of the last bit.
    allowed = {stopped_after(losses, tolerance + e, patience) for e in (-1e-9, 0.0, 1e-9)}
    assert len(found) in allowed
    np.testing.assert_array_equal(found.indices, whole.indices[: len(found)])
    np.testing.assert_allclose(found.weights, whole.prefix(len(found)).weights, rtol=0, atol=1e-12)


def test_the_first_refit_is_measured_against_the_query_itself() -> None:
    """‖q − m‖² = 2 − 2b: a first match below cosine ½ is no progress on L_0 = 1."""
    pool = np.eye(4)
    found = select([1.0, 1.0, 1.0, 1.0], pool, 4, stop=AdaptiveStop(0.0, 1))
    assert len(found) == 1  # b = ½ exactly, so L_1 = L_0
    assert len(select([1.0, 1.0, 1.0, 1.0], pool, 4)) == 4
    closer = select([1.1, 1.0, 1.0, 1.0], pool, 4, stop=AdaptiveStop(0.0, 1))
    assert len(closer) == 4


@pytest.mark.parametrize("patience", [1, 2, 3, 5])
def test_patience_counts_refits_in_a_row(patience: int) -> None:
    """After an exact match nothing improves, so the pursuit ends `patience` picks later."""
    query, pool = clustered(4, 30, 16)
    found = select(pool[3], pool, 30, stop=AdaptiveStop(1e-5, patience))
    assert len(found) == 1 + patience
    assert len(select(query, pool, 2, stop=AdaptiveStop(1e-5, patience))) <= 2


def test_default_is_the_paper() -> None:
    assert AdaptiveStop() == AdaptiveStop(tolerance=1e-5, patience=2)


def test_stops_early_on_a_redundant_store() -> None:
    query, pool = clustered(5, 200, 96, spread=0.1)
    found = select(query, pool, 200, stop=AdaptiveStop())
    assert 2 < len(found) < 60
    assert found.gaps[-1] < 1e-3


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"tolerance": -1e-9}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"tolerance": np.inf}, "tolerance"),
        ({"patience": 0}, "patience"),
        ({"patience": 1.5}, "patience"),
    ],
)
def test_refuses(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be"):
        AdaptiveStop(**arguments)


@pytest.mark.parametrize("tolerance", ["x", None, -1e-9, float("nan"), float("inf"), True])
def test_a_tolerance_that_is_none_is_named(tolerance):
    with pytest.raises(ValueError, match="tolerance must be a finite number"):
        AdaptiveStop(tolerance=tolerance)


@pytest.mark.parametrize("patience", [None, float("nan"), 0, 1.5, True, "2"])
def test_a_patience_that_is_none_is_named(patience):
    with pytest.raises(ValueError, match="patience must be an integer"):
        AdaptiveStop(patience=patience)


def test_the_budget_is_twenty_unless_said_otherwise():
    pool = np.eye(30)
    assert len(select(pool.sum(axis=0), pool)) == 20
