"""`choose`: equals `select` on a sound pool, and copes with anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempursuit_adapters.choice import Choice, choose
from mempursuit_adapters.pool import Pool
from mempursuit_adapters.triage import (
    BAD_QUERY,
    DIMENSION,
    MISALIGNED,
    MISSING,
    NO_QUERY,
    NOT_FINITE,
    NOT_NUMBERS,
    ZERO,
)
from mempursuit_core import AdaptiveStop, Dials, preset, select

PAPER = Dials()
D = 8


class Unreadable:
    def __array__(self, *args: object, **kwargs: object) -> Any:
        raise OSError("the page is gone")


def unit_pool(size: int = 12, seed: int = 0, **extra: Any) -> Pool:
    rng = np.random.default_rng(seed)
    return Pool(
        ids=[f"m{i}" for i in range(size)],
        vectors=rng.normal(size=(size, D)).astype(np.float32),
        query=rng.normal(size=D).astype(np.float32),
        **extra,
    )


def with_fault(at: int, vector: Any, size: int = 12) -> Pool:
    pool = unit_pool(size)
    vectors: list[Any] = list(pool.vectors)
    vectors[at] = vector
    return Pool(pool.ids, vectors, pool.query)


FAULTS = [
    (None, MISSING),
    ([], MISSING),
    ([1.0] * (D + 1), DIMENSION),
    (np.ones((2, D)), DIMENSION),
    (np.ones((1, D)), DIMENSION),
    (1.0, DIMENSION),
    ([float("nan")] * D, NOT_FINITE),
    ([float("inf")] + [0.0] * (D - 1), NOT_FINITE),
    ([None] * D, NOT_FINITE),
    (np.zeros(D), ZERO),
    ("[0.1, 0.2]", NOT_NUMBERS),
    (["a"] * D, NOT_NUMBERS),
    ([[1.0], [1.0, 2.0]], NOT_NUMBERS),
    (object(), NOT_NUMBERS),
    ({"vector": [1.0]}, NOT_NUMBERS),
    ([1j] * D, NOT_NUMBERS),
    ([10**400] * D, NOT_NUMBERS),
    (Unreadable(), NOT_NUMBERS),
]


@pytest.mark.parametrize("name", ["paper", "auto"])
@pytest.mark.parametrize("form", [np.asarray, list, lambda rows: rows.tolist()])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_sound_pool_is_chosen_as_select_does(name: str, form: Any, dtype: Any) -> None:
    pool = unit_pool(30)
    rows = np.asarray(pool.vectors).astype(dtype)
    expected = select(
        pool.query,
        rows,
        7,
        discount=preset(name).discount,
        near_duplicate=preset(name).near_duplicate,
    )
    choice = choose(Pool(pool.ids, form(rows), pool.query), 7, preset(name))
    assert choice.positions == tuple(expected.indices)
    assert choice.scores == pytest.approx(tuple(expected.scores), abs=1e-12)
    assert choice.ids == tuple(f"m{i}" for i in expected.indices)
    assert choice.trouble == {}
    assert choice.budget == 7


@pytest.mark.parametrize(("vector", "cause"), FAULTS)
@pytest.mark.parametrize("at", [0, 2, 11])
def test_a_memory_that_cannot_be_judged_keeps_its_native_place(
    vector: Any, cause: str, at: int
) -> None:
    pool = with_fault(at, vector)
    choice = choose(pool, 4, PAPER)
    sound = [i for i in range(12) if i != at]
    places = 3 if at < 4 else 4
    rows = np.stack([np.asarray(pool.vectors[i]) for i in sound])
    expected = [sound[i] for i in select(pool.query, rows, places).indices]
    if at < 4:
        expected.insert(at, at)
        assert choice.scores[at] is None
    assert choice.positions == tuple(expected)
    assert choice.trouble == {cause: 1}
    assert choice.judged == tuple(sound)


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        (None, NO_QUERY),
        ([], NO_QUERY),
        ([float("nan")] * D, BAD_QUERY),
        (np.zeros(D), BAD_QUERY),
        (np.ones((1, D)), BAD_QUERY),
        ("who?", BAD_QUERY),
        (Unreadable(), BAD_QUERY),
    ],
)
def test_without_a_usable_query_the_native_order_stays(query: Any, cause: str) -> None:
    pool = unit_pool()
    choice = choose(Pool(pool.ids, pool.vectors, query), 5, PAPER)
    assert choice.positions == (0, 1, 2, 3, 4)
    assert choice.selection is None
    assert choice.trouble == {cause: 12}
    assert choice.came_in == choice.went_out == ()


def test_a_query_of_another_encoder_leaves_the_native_order() -> None:
    pool = unit_pool()
    choice = choose(Pool(pool.ids, pool.vectors, np.ones(D + 4)), 3, PAPER)
    assert choice.positions == (0, 1, 2)
    assert choice.trouble == {DIMENSION: 12}


@pytest.mark.parametrize("vectors", [np.ones((11, D)), np.ones((13, D)), None, 3, iter([])])
def test_vectors_that_do_not_line_up_with_ids_are_not_guessed_at(vectors: Any) -> None:
    pool = unit_pool()
    choice = choose(Pool(pool.ids, vectors, pool.query), 3, PAPER)
    assert choice.positions == (0, 1, 2)
    assert choice.trouble == {MISALIGNED: 12}


def test_half_the_store_from_another_encoder() -> None:
    pool = unit_pool(10)
    vectors = [row if i % 2 else np.ones(D + 1) for i, row in enumerate(np.asarray(pool.vectors))]
    choice = choose(Pool(pool.ids, vectors, pool.query), 6, PAPER)
    assert [choice.positions[p] for p in (0, 2, 4)] == [0, 2, 4]
    assert all(choice.positions[p] % 2 for p in (1, 3, 5))
    assert choice.trouble == {DIMENSION: 5}


def test_a_repeated_id_counts_at_its_first_place() -> None:
    pool = unit_pool(6)
    vectors = np.asarray(pool.vectors)
    doubled = Pool(
        ["m0", "m1", "m1", "m2", "m0", "m3", "m4", "m5"],
        vectors[[0, 1, 1, 2, 0, 3, 4, 5]],
        pool.query,
    )
    plain, choice = choose(pool, 4, PAPER), choose(doubled, 4, PAPER)
    assert choice.ids == plain.ids
    assert choice.went_out == plain.went_out
    assert choice.trouble == {}
    assert len(choose(doubled, 8, PAPER).positions) == 6


def test_ids_that_cannot_be_hashed_are_all_taken_as_different() -> None:
    pool = unit_pool(5)
    ids: Any = [["a"], ["a"], ["b"], ["c"], ["d"]]
    choice = choose(Pool(ids, pool.vectors, pool.query), 2, PAPER)
    assert choice.positions == choose(pool, 2, PAPER).positions
    assert "native rank" in choice.explain()


def test_an_empty_pool() -> None:
    choice = choose(Pool([], [], [1.0, 2.0]), 5, PAPER)
    assert choice.positions == choice.ids == ()
    assert choice.trouble == {}


def test_an_adaptive_stop_hands_back_fewer() -> None:
    rows = np.eye(D, dtype=np.float32)
    pool = Pool(range(D), rows, rows[0] + rows[1])
    stop = Dials(stop=AdaptiveStop())
    choice = choose(pool, D, stop)
    assert len(choice.positions) < D
    assert set(choice.positions[:2]) == {0, 1}
    assert choice.budget == D
    assert len(choice.went_out) == D - len(choice.positions)

    vectors = [*rows[:7], None]
    held = choose(Pool(range(D), vectors, pool.query), D, stop)
    assert held.positions[-1] == 7
    assert held.scores[-1] is None


@pytest.mark.parametrize("k", [0, -1, 2.5, None, "3", True])
def test_a_bad_budget_is_refused(k: Any) -> None:
    with pytest.raises(ValueError, match="k must be a whole number"):
        choose(unit_pool(), k, PAPER)


def test_a_bad_dial_is_refused_even_for_an_empty_pool() -> None:
    with pytest.raises(ValueError, match="ridge"):
        choose(Pool([], [], None), 1, Dials(ridge=-1.0))


def test_nothing_handed_in_is_written_to() -> None:
    pool = unit_pool()
    rows, query = np.asarray(pool.vectors), np.asarray(pool.query)
    before = rows.copy(), query.copy()
    rows.setflags(write=False)
    query.setflags(write=False)
    choose(Pool(pool.ids, rows, query), 5, PAPER)
    np.testing.assert_array_equal(rows, before[0])
    np.testing.assert_array_equal(query, before[1])


def explained() -> Choice:
    e = np.eye(4, dtype=np.float32)
    # A fact, the same fact again, and the other half of the question.
    rows = np.stack([e[0], e[0], e[1] + 0.5 * e[0], e[3]])
    texts = ["likes tea", "tea is\nwhat she likes", "lives in Lyon " + "far away " * 20, "x"]
    return choose(Pool(["a", "b", "c", "d"], rows, 1.1 * e[0] + e[1], texts=texts), 2, PAPER)


def test_explain_says_what_came_in_and_what_went_out() -> None:
    choice = explained()
    assert choice.came_in == ("c",)
    assert choice.went_out == ("b",)
    lines = choice.explain().splitlines()
    assert lines[0] == "2 of 4 memories, in entry order:"
    assert any(line.startswith("  kept     a  (native rank 1, score +") for line in lines)
    assert any(line.startswith("  came in  c  (native rank 3, score +") for line in lines)
    assert lines[-1] == "  went out b  (native rank 2)  tea is what she likes"
    long = next(line for line in lines if "Lyon" in line)
    assert long.endswith("…")
    assert len(long) < 130


def test_explain_names_what_it_could_not_judge() -> None:
    text = choose(with_fault(0, None), 3, PAPER).explain()
    assert "kept     m0  (native rank 1, framework's order)" in text
    assert text.endswith("could not judge 1 memories: missing_vector")


@pytest.mark.parametrize("texts", [["only one"], None, 5])
def test_texts_that_do_not_fit_are_left_out(texts: Any) -> None:
    assert choose(unit_pool(texts=texts), 3, PAPER).texts == ()


ANY_VECTOR = st.one_of(
    st.sampled_from([vector for vector, _ in FAULTS]),
    st.lists(st.floats(width=32), min_size=D, max_size=D),
    st.lists(st.floats(-1, 1, width=32), min_size=D, max_size=D).map(np.float16),
    st.lists(st.floats(-1, 1), min_size=D, max_size=D).map(np.array),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=D, max_size=D),
)


@settings(max_examples=300, deadline=None)
@given(
    query=ANY_VECTOR,
    vectors=st.lists(ANY_VECTOR, max_size=12),
    extra_ids=st.integers(-1, 1),
    repeats=st.booleans(),
    k=st.integers(1, 15),
    dials=st.sampled_from(
        [PAPER, preset("auto"), Dials(stop=AdaptiveStop()), Dials(near_duplicate=0.5)]
    ),
)
def test_whatever_the_pool_holds_the_choice_is_in_order(
    query: Any, vectors: list[Any], extra_ids: int, repeats: bool, k: int, dials: Dials
) -> None:
    size = max(0, len(vectors) + extra_ids)
    ids = [i // 2 if repeats else i for i in range(size)]
    choice = choose(Pool(ids, vectors, query), k, dials)
    assert len(set(choice.positions)) == len(choice.positions)
    assert len(set(choice.ids)) == len(choice.ids)
    assert choice.budget == min(k, len(set(ids)))
    assert set(choice.positions) <= set(range(size))
    assert len(choice.scores) == len(choice.positions)
    if dials.stop is None:
        assert len(choice.positions) == choice.budget
    else:
        assert len(choice.positions) <= choice.budget
    assert set(choice.came_in) == set(choice.ids) - set(list(dict.fromkeys(ids))[: choice.budget])
    judged = set(choice.judged)
    for place, i in enumerate(list(dict.fromkeys(ids))[: choice.budget]):
        first = ids.index(i)
        if first not in judged:
            assert first in choice.positions
            if dials.stop is None:
                assert choice.positions[place] == first
    assert isinstance(choice.explain(), str)
