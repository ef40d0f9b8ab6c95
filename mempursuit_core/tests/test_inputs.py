"""Odd inputs: what is accepted, what is refused, and how it is said."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from mempursuit_core import Selection, select
from mempursuit_core.tests.pools import clustered

QUERY, POOL = clustered(11, 40, 24)
QUERY32, POOL32 = QUERY.astype(np.float32), POOL.astype(np.float32)


def same(found: Selection, expected: Selection, tolerance: float = 1e-9) -> None:
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=0, atol=tolerance)


def sane(found: Selection, n: int) -> None:
    assert len(found) == n
    assert len(set(found.indices.tolist())) == n
    for name in ("weights", "scores", "residual_norms", "gaps"):
        values = getattr(found, name)
        assert values.shape == (n,)
        assert np.isfinite(values).all(), name
    for t in range(1, n + 1):
        weights = found.prefix(t).weights
        assert weights.min() >= 0
        assert abs(weights.sum() - 1) <= 1e-9
    assert (found.gaps >= 0).all()


# Accepted forms


@pytest.mark.parametrize(
    "form",
    [
        lambda a: a.tolist(),
        lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a.tolist()),
        np.asfortranarray,
        lambda a: np.repeat(a, 3, axis=-1)[..., ::3],
        lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
        lambda a: a.astype(object),
        lambda a: a.astype(">f8"),
        lambda a: a.astype(np.longdouble),
        lambda a: list(a),
    ],
    ids=[
        "list",
        "tuple",
        "fortran",
        "strided",
        "reversed",
        "object",
        "big-endian",
        "longdouble",
        "list-of-arrays",
    ],
)
def test_forms_of_the_same_numbers(form: Any) -> None:
    same(select(form(QUERY), form(POOL), 9), select(QUERY, POOL, 9))


def test_lists_of_python_numbers_of_all_kinds() -> None:
    found = select([1, 2.0, True], [[1, 2, 3], [Decimal("3.5"), np.float32(2), False]], 2)
    same(found, select([1.0, 2.0, 1.0], [[1.0, 2.0, 3.0], [3.5, 2.0, 0.0]], 2))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.bool_])
def test_whole_numbers(dtype: type) -> None:
    rng = np.random.default_rng(0)
    query = rng.integers(0, 2, size=9).astype(dtype)
    pool = rng.integers(0, 2, size=(12, 9)).astype(dtype)
    query[0] = pool[:, 1] = 1
    same(select(query, pool, 6), select(query.astype(float), pool.astype(float), 6))


def test_float16_is_read_exactly() -> None:
    query, pool = QUERY.astype(np.float16), POOL.astype(np.float16)
    same(select(query, pool, 9), select(query.astype(np.float64), pool.astype(np.float64), 9))


@pytest.mark.parametrize(
    ("query", "pool"), [(QUERY32, POOL), (QUERY, POOL32), (QUERY.astype(np.float16), POOL32)]
)
def test_query_and_pool_of_different_precisions(query: Any, pool: Any) -> None:
    expected = select(query.astype(np.float64), pool.astype(np.float64), 9)
    same(select(query, pool, 9), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_inputs_are_never_written(dtype: type) -> None:
    query, pool = (3 * QUERY).astype(dtype), (3 * POOL).astype(dtype)
    kept = query.copy(), pool.copy()
    select(query, pool, 9)
    np.testing.assert_array_equal(query, kept[0])
    np.testing.assert_array_equal(pool, kept[1])
    query.setflags(write=False)
    pool.setflags(write=False)
    found = select(query, pool, 9)
    same(found, select(kept[0], kept[1], 9))
    for name in ("indices", "weights", "scores", "residual_norms", "gaps"):
        assert not np.shares_memory(getattr(found, name), pool)


def test_memory_mapped_pool(tmp_path: Any) -> None:
    np.save(tmp_path / "pool.npy", POOL32)
    mapped = np.load(tmp_path / "pool.npy", mmap_mode="r")
    same(select(QUERY32, mapped, 9), select(QUERY32, POOL32, 9))


@pytest.mark.parametrize("k", [np.int64(5), np.uint8(5), 5.0, np.float32(5)])
def test_budget_of_any_whole_number_type(k: Any) -> None:
    same(select(QUERY, POOL, k), select(QUERY, POOL, 5))


# Sizes


@pytest.mark.parametrize("pool", [[], np.empty((0, 24)), np.empty((0, 0)), np.empty((0, 7))])
def test_empty_pool(pool: Any) -> None:
    found = select(QUERY, pool, 3)
    assert len(found) == 0
    assert found.indices.dtype == np.int64
    assert found.weights.shape == found.gaps.shape == (0,)
    assert repr(found) == "Selection(empty)"
    assert len(found.prefix(2)) == 0


@pytest.mark.parametrize("k", [40, 41, 10**6, 2**40])
def test_budget_beyond_the_pool(k: int) -> None:
    found = select(QUERY, POOL, k)
    assert sorted(found.indices.tolist()) == list(range(40))
    same(found, select(QUERY, POOL, 40))


def test_one_memory() -> None:
    found = select([1.0, 1.0], [[1.0, 0.0]], 5)
    assert found.indices.tolist() == [0]
    assert found.weights.tolist() == [1.0]
    assert found.gaps.tolist() == [0.0]
    np.testing.assert_allclose(found.scores, [np.sqrt(0.5)])


def test_one_dimension() -> None:
    found = select([2.0], [[-1.0], [3.0], [-0.5], [4.0]], 4)
    assert found.indices.tolist() == [1, 0, 2, 3]
    sane(found, 4)


# Geometry


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ridge", [0.0, 1e-10, 1e-3, 10.0, 1e6])
def test_all_memories_equal(dtype: type, ridge: float) -> None:
    rng = np.random.default_rng(5)
    pool = np.tile(rng.normal(size=33), (17, 1)).astype(dtype)
    found = select(rng.normal(size=33).astype(dtype), pool, 17, ridge=ridge)
    sane(found, 17)
    assert found.indices.tolist() == list(range(17))
    np.testing.assert_allclose(found.residual_norms, found.residual_norms[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("P", [2, 7, 8, 33, 130])
@pytest.mark.parametrize("d", [3, 16, 63, 384])
def test_exact_ties_go_to_the_smaller_index(dtype: type, P: int, d: int) -> None:
    """Wherever the copies stand in memory, and however long the rows are."""
    rng = np.random.default_rng(P * d)
    rows = rng.normal(size=(2, d)).astype(dtype)
    pool = rows[np.arange(P) % 2]
    found = select(rows.sum(axis=0), pool, P)
    sane(found, P)
    for parity in (0, 1):
        order = [i for i in found.indices.tolist() if i % 2 == parity]
        assert order == sorted(order)


@pytest.mark.parametrize("ridge", [0.0, 1e-10, 1e-4])
@pytest.mark.parametrize("jitter", [0.0, 1e-12, 1e-7, 1e-3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates_share_the_weight(ridge: float, jitter: float, dtype: type) -> None:
    query, base = clustered(3, 20, 30, spread=0.8)
    rng = np.random.default_rng(1)
    pool = np.repeat(base, 4, axis=0) + jitter * rng.normal(size=(80, 30))
    found = select(query.astype(dtype), pool.astype(dtype), 80, ridge=ridge)
    sane(found, 80)
    single = select(query.astype(dtype), base.astype(dtype), 20, ridge=ridge)
    together = np.zeros(20)
    np.add.at(together, found.indices // 4, found.weights)
    alone = np.zeros(20)
    alone[single.indices] = single.weights
    np.testing.assert_allclose(together, alone, rtol=0, atol=2e-3 + 20 * jitter)
    if jitter == 0.0 and ridge > 1e-5:
        shares = found.weights[np.argsort(found.indices, kind="stable")].reshape(20, 4)
        np.testing.assert_allclose(shares, np.repeat(together[:, None] / 4, 4, axis=1), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_query_equal_to_a_memory(dtype: type) -> None:
    pool = POOL.astype(dtype)
    found = select(7 * pool[23], pool, 40)
    sane(found, 40)
    assert found.indices[0] == 23
    rest = [i for i in range(40) if i != 23]
    assert found.indices[1:].tolist() == rest  # nothing is left to explain: pool order
    assert found.residual_norms.max() < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_query_opposite_to_every_memory(dtype: type) -> None:
    rng = np.random.default_rng(2)
    shared = rng.normal(size=20)
    pool = (rng.normal(size=(15, 20)) + 4 * shared).astype(dtype)
    found = select((-shared).astype(dtype), pool, 15)
    sane(found, 15)
    assert found.scores[0] < 0
    assert found.residual_norms[0] > 1


def test_query_orthogonal_to_every_memory() -> None:
    found = select([0.0, 0.0, 1.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, -1.0, 0.0]], 3)
    sane(found, 3)
    assert found.indices[0] == 0
    np.testing.assert_allclose(found.residual_norms[-1], 1.0, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_more_memories_than_dimensions(dtype: type, d: int) -> None:
    rng = np.random.default_rng(d)
    found = select(rng.normal(size=d).astype(dtype), rng.normal(size=(90, d)).astype(dtype), 90)
    sane(found, 90)


def test_opposite_memories() -> None:
    found = select([0.0, 1.0], [[1.0, 0.1], [-1.0, 0.1], [1.0, -0.1], [-1.0, -0.1]], 4)
    sane(found, 4)
    np.testing.assert_allclose(found.weights[:2], [0.5, 0.5], atol=1e-9)


# Magnitudes


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-40, 1e-20, 1e20, 1e150, 1e200, 1e307])
def test_extreme_magnitudes(scale: float) -> None:
    same(select(QUERY, scale * POOL, 12), select(QUERY, POOL, 12))
    same(select(scale * QUERY, POOL, 12), select(QUERY, POOL, 12))


@pytest.mark.parametrize("scale", [1e-36, 1e-25, 1e-15, 1e15, 1e25, 1e38])
def test_extreme_float32_magnitudes(scale: float) -> None:
    query, pool = QUERY32 * np.float32(scale), POOL32 * np.float32(scale)
    same(select(query, pool, 12), select(query.astype(np.float64), pool.astype(np.float64), 12))


def test_rows_of_very_different_magnitudes() -> None:
    scales = 10.0 ** np.linspace(-290, 290, 40)[:, None]
    same(select(QUERY, POOL * scales, 12), select(QUERY, POOL, 12))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_denormals(dtype: type) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    query = np.array([3, 4, 0], dtype=dtype) * tiny
    pool = np.array([[1, 0, 0], [0, 1, 0], [3, 4, 1]], dtype=dtype) * tiny
    same(
        select(query, pool, 3), select([3.0, 4.0, 0.0], [[1.0, 0, 0], [0, 1.0, 0], [3, 4, 1.0]], 3)
    )


# Refused: a ValueError that names the argument, and the row where there is one


def spoilt(row: int, value: float, dtype: type = np.float64) -> Any:
    pool = POOL.astype(dtype)
    pool[row, 7] = value
    return pool


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 17, 39])
def test_bad_value_in_the_pool(dtype: type, value: float, row: int) -> None:
    with pytest.raises(ValueError, match=rf"candidates .*NaN or infinity in row {row}\b"):
        select(QUERY, spoilt(row, value, dtype), 5)


def test_the_first_bad_row_is_named() -> None:
    pool = spoilt(30, np.nan)
    pool[12] = np.inf
    with pytest.raises(ValueError, match=r"row 12\b"):
        select(QUERY, pool, 5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_zero_memory(dtype: type) -> None:
    pool = POOL.astype(dtype)
    pool[8] = 0
    with pytest.raises(ValueError, match=r"candidates .*zeros in row 8\b"):
        select(QUERY, pool, 5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("value", "what"), [(np.nan, "NaN or infinity"), (np.inf, "NaN or infinity")]
)
def test_bad_value_in_the_query(dtype: type, value: float, what: str) -> None:
    query = QUERY.astype(dtype)
    query[3] = value
    with pytest.raises(ValueError, match=f"query .*{what}"):
        select(query, POOL, 5)


def test_zero_query() -> None:
    with pytest.raises(ValueError, match=r"query .*zeros"):
        select(np.zeros(24), POOL, 5)


@pytest.mark.parametrize(
    ("query", "pool", "name"),
    [
        (QUERY, POOL[None], "candidates"),
        (QUERY, POOL[0], "candidates"),
        (QUERY, 3.0, "candidates"),
        (QUERY, POOL[:, :20], "candidates"),
        (QUERY, [[1.0, 2.0], [1.0]], "candidates"),
        (QUERY, [["a"] * 24], "candidates"),
        (QUERY, [[None] * 24], "candidates"),
        (QUERY, None, "candidates"),
        (QUERY, POOL.astype(complex), "candidates"),
        (QUERY, np.empty((3, 0)), "candidates"),
        (QUERY[None], POOL, "query"),
        (QUERY[:, None], POOL, "query"),
        (1.0, POOL, "query"),
        ([], POOL, "query"),
        (None, POOL, "query"),
        ("text", POOL, "query"),
        ([[1.0], [2.0, 3.0]], POOL, "query"),
        (QUERY.astype(complex), POOL, "query"),
    ],
)
def test_wrong_shapes_and_kinds(query: Any, pool: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} "):
        select(query, pool, 5)


def test_an_empty_pool_does_not_hide_a_bad_query() -> None:
    with pytest.raises(ValueError, match="query "):
        select([np.nan, 1.0], [], 5)


@pytest.mark.parametrize(
    "k", [0, -1, 2.5, np.nan, np.inf, "5", None, True, False, [5], np.array([5, 6])]
)
def test_bad_budget(k: Any) -> None:
    with pytest.raises(ValueError, match=r"^k must be"):
        select(QUERY, POOL, k)


@pytest.mark.parametrize(
    ("dial", "value"),
    [
        ("ridge", -1e-10),
        ("ridge", np.nan),
        ("ridge", np.inf),
        ("ridge", "small"),
        ("ridge", None),
        ("ridge", True),
        ("discount", -0.1),
        ("discount", 1.1),
        ("discount", np.nan),
        ("discount", "Auto"),
        ("discount", None),
        ("near_duplicate", 1.01),
        ("near_duplicate", -1.01),
        ("near_duplicate", np.nan),
        ("near_duplicate", "on"),
        ("near_duplicate", False),
    ],
)
def test_bad_dials(dial: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{dial} must be"):
        select(QUERY, POOL, 5, **{dial: value})


@pytest.mark.parametrize("stop", [0.1, True, "auto", {"tolerance": 1}])
def test_bad_stop(stop: Any) -> None:
    with pytest.raises(ValueError, match=r"^stop must be"):
        select(QUERY, POOL, 5, stop=stop)
