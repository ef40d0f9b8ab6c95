"""Many questions at once, and many callers at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from mempursuit_core import AdaptiveStop, Selection, select, select_many, warmup
from mempursuit_core.tests.pools import clustered

QUESTIONS = [clustered(seed, 20 + 7 * seed, 48) for seed in range(12)]
QUERIES = [query.astype(np.float32) for query, _ in QUESTIONS]
POOLS = [pool.astype(np.float32) for _, pool in QUESTIONS]


def identical(found: Selection, expected: Selection) -> None:
    for name in ("indices", "weights", "scores", "residual_norms", "gaps"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("threads", [None, 1, 2, 7])
@pytest.mark.parametrize(
    "dials",
    [{}, {"discount": "auto", "near_duplicate": 0.95}, {"stop": AdaptiveStop(), "ridge": 1e-6}],
    ids=str,
)
def test_same_answers_as_one_by_one(threads: int | None, dials: dict[str, Any]) -> None:
    found = select_many(QUERIES, POOLS, 15, threads=threads, **dials)
    assert len(found) == len(QUERIES)
    for one, query, pool in zip(found, QUERIES, POOLS, strict=True):
        identical(one, select(query, pool, 15, **dials))


def test_stacked_arrays() -> None:
    queries = np.stack(QUERIES[:3])
    pools = np.stack([pool[:20] for pool in POOLS[:3]])
    for one, query, pool in zip(select_many(queries, pools, 5), queries, pools, strict=True):
        identical(one, select(query, pool, 5))


def test_no_questions() -> None:
    assert select_many([], [], 5) == []


def test_an_empty_pool_among_others() -> None:
    found = select_many(QUERIES[:2], [[], POOLS[1]], 5)
    assert [len(one) for one in found] == [0, 5]


@pytest.mark.parametrize("threads", [1, 3])
def test_error_names_the_question(threads: int) -> None:
    pools = list(POOLS)
    pools[4] = pools[4].copy()
    pools[4][6, 2] = np.nan
    with pytest.raises(ValueError, match=r"^question 4: candidates .*row 6\b"):
        select_many(QUERIES, pools, 5, threads=threads)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "two"])
def test_bad_threads(threads: Any) -> None:
    with pytest.raises(ValueError, match=r"^threads must be"):
        select_many(QUERIES, POOLS, 5, threads=threads)


def test_unequal_numbers() -> None:
    with pytest.raises(ValueError, match=r"^queries and pools must be of one number, got 12 and 3"):
        select_many(QUERIES, POOLS[:3], 5)


def test_bad_budget_is_refused_without_questions() -> None:
    with pytest.raises(ValueError, match=r"^k must be"):
        select_many([], [], 0)


def test_callers_at_once_do_not_meet() -> None:
    warmup()
    expected = [select(q, p, 15) for q, p in zip(QUERIES, POOLS, strict=True)]
    work = [i % len(QUERIES) for i in range(240)]
    with ThreadPoolExecutor(8) as workers:
        found = list(workers.map(lambda i: select(QUERIES[i], POOLS[i], 15), work))
    for i, one in zip(work, found, strict=True):
        identical(one, expected[i])
