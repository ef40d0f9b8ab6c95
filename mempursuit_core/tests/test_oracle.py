"""The pursuit against exact answers: the shared oracle's, our own reference's, and by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mempursuit_core import select
from mempursuit_core.tests.pools import clustered, unit
from mempursuit_core.tests.reference import pursue

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("MEMPURSUIT_SHARED") or ROOT.parent / "shared")
CASES = SHARED / "reference" / "pursuit_cases.npz"


def shared_cases() -> list[Any]:
    if not CASES.is_file():
        why = f"no oracle at {CASES}; set MEMPURSUIT_SHARED to the folder that holds reference/"
        return [pytest.param("", marks=pytest.mark.skip(reason=why))]
    with np.load(CASES) as cases:
        return sorted({name.split("/")[0] for name in cases.files})


@pytest.mark.parametrize("name", shared_cases())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shared_oracle(name: str, dtype: type) -> None:
    with np.load(CASES) as cases:
        case = {key.split("/")[1]: cases[key] for key in cases.files if key.startswith(f"{name}/")}
    discount, near_duplicate = float(case["discount"]), float(case["near_duplicate"])
    found = select(
        case["query"].astype(dtype),
        case["candidates"].astype(dtype),
        int(case["k"]),
        discount="auto" if discount < 0 else discount,
        near_duplicate=None if np.isnan(near_duplicate) else near_duplicate,
    )
    np.testing.assert_array_equal(found.indices, case["indices"])
    np.testing.assert_allclose(found.weights, case["weights"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.scores, case["scores"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.residual_norms**2, case["residual_sq"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.gaps, case["gaps"], rtol=0, atol=1e-6)


DIALS: list[dict[str, Any]] = [
    {},
    {"discount": "auto", "near_duplicate": 0.95},
    {"discount": 0.7, "near_duplicate": 0.8},
    {"discount": 0.0},
    {"ridge": 0.05},
]
SHAPES = [
    # seed, P, d, K, spread: narrow and wide pools, redundant and diverse ones, K below and above P
    (1, 60, 48, 20, 0.4),
    (2, 30, 64, 40, 0.8),
    (3, 200, 96, 25, 0.3),
    (4, 12, 5, 4, 1.0),
    (5, 90, 33, 31, 0.15),
    (6, 1, 7, 3, 0.5),
    (7, 300, 128, 60, 0.6),
]


@pytest.mark.parametrize("dials", DIALS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_own_reference(shape: tuple[int, ...], dials: dict[str, Any], dtype: type) -> None:
    seed, P, d, k, spread = shape
    query, pool = clustered(int(seed), int(P), int(d), spread=spread)
    query, pool = query.astype(dtype), pool.astype(dtype)
    expected = pursue(query, pool, int(k), **dials)
    found = select(query, pool, int(k), **dials)
    assert found.indices.tolist() == expected.indices
    np.testing.assert_allclose(found.weights, expected.weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.residual_norms, expected.residual_norms, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.gaps, expected.gaps, rtol=0, atol=1e-6)


def test_by_hand_two_facts_and_a_repeat() -> None:
    """q is half way between two orthogonal facts; the repeat of the first must wait."""
    query = [1.0, 1.0, 0.1]
    pool = [[1.0, 0.0, 0.1], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    found = select(query, pool, 3, ridge=0.0)
    # b = 1.01, 1/√1 and 1 over √2.01·‖m‖: the first wins alone; its residual points to the third.
    assert found.indices.tolist() == [0, 2, 1]
    q = np.array(query) / np.sqrt(2.01)
    m0, m2 = np.array(pool[0]) / np.sqrt(1.01), np.array(pool[2])
    share = 0.5 + ((q @ m0) - (q @ m2)) / (2 * (1 - m0 @ m2))
    np.testing.assert_allclose(found.prefix(2).weights, [share, 1 - share], atol=1e-12)
    np.testing.assert_allclose(found.scores[:2], [q @ m0, m2 @ (q - m0)], atol=1e-12)
    np.testing.assert_allclose(found.residual_norms[0], np.linalg.norm(q - m0), atol=1e-12)


def test_by_hand_query_in_the_pool() -> None:
    found = select([0.0, 2.0], [[1.0, 0.0], [0.0, 5.0], [-1.0, 0.0]], 3, ridge=0.0)
    assert found.indices.tolist() == [1, 0, 2]  # the residual vanished: pool order
    np.testing.assert_allclose(found.weights, [1.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(found.residual_norms, 0.0, atol=1e-15)
    np.testing.assert_allclose(found.gaps, 0.0, atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 31, 32, 33, 300, 65_536, 65_600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_dimension(d: int, dtype: type) -> None:
    """Vectors are taken 32 numbers at a time, and from 65,537 on their codes say little."""
    rng = np.random.default_rng(d)
    pool = (rng.normal(size=(14, d)) + 1.0).astype(dtype)
    query = (pool[:3].sum(axis=0) + rng.normal(size=d)).astype(dtype)
    steps = min(d, 6)  # with more picks than dimensions the weights are not unique
    found, expected = select(query, pool, steps), pursue(query, pool, steps)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.gaps, expected.gaps, rtol=0, atol=1e-9)
    if d > 1:
        assert found.indices.tolist() == expected.indices


def test_sums_of_codes_that_would_not_fit() -> None:
    """Half a million numbers of one sign: their codes' products do not fit 32 bits."""
    rng = np.random.default_rng(0)
    d = 500_000
    along = np.array([1.0, -1.0, 0.9, -0.8, 0.5, 0.2])[:, None]
    pool = (along + rng.normal(size=(6, d)) * [[0.1], [0.1], [0.3], [0.2], [0.4], [0.5]]).astype(
        np.float32
    )
    query = (1.0 + rng.normal(size=d)).astype(np.float32)
    found, expected = select(query, pool, 4), pursue(query, pool, 4)
    assert found.indices.tolist() == expected.indices
    np.testing.assert_allclose(found.gaps, expected.gaps, rtol=0, atol=1e-9)


@pytest.mark.parametrize("distance", [0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2])
def test_small_residuals_are_not_lost_in_rounding(distance: float) -> None:
    """‖r‖² as a difference of products would be off by 1e-16, and ‖r‖ by 1e-8."""
    rng = np.random.default_rng(3)
    pool, noise = unit(rng.normal(size=(20, 64))), unit(rng.normal(size=64))
    query = unit(pool[4] + distance * noise)
    found = select(query, pool, 3)
    for t in (1, 2, 3):
        prefix = found.prefix(t)
        r = query - prefix.weights @ pool[prefix.indices]
        assert prefix.residual_norms[-1] == pytest.approx(np.linalg.norm(r), rel=1e-6, abs=5e-16)


@pytest.mark.parametrize("dials", [{}, {"discount": 0.5}, {"discount": "auto"}], ids=str)
def test_more_picks_in_use_than_there_is_room_for_at_first(dials: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    pool = unit(np.eye(140, 160) + 1e-3 * rng.normal(size=(140, 160)))
    query = rng.uniform(0.99, 1.01, size=90) @ pool[:90]
    found, expected = select(query, pool, 120, **dials), pursue(query, pool, 120, **dials)
    assert (found.weights > 0).sum() > 64
    assert found.indices.tolist() == expected.indices
    np.testing.assert_allclose(found.weights, expected.weights, rtol=0, atol=1e-9)
