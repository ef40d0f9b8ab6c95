"""Whatever goes wrong, the search goes on as Mem0's own would."""

from __future__ import annotations

import inspect
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mem0 import AsyncMemory, Memory

from integration_tests.mem0_kit import (
    DIMENSION,
    QUESTION,
    USER,
    facts,
    identifier,
    make,
    native_order,
    pursued,
    search,
    texts_of,
    write,
)
from mempursuit_adapters import mem0 as adapter
from mempursuit_adapters.mem0 import stores

FACTS = facts()
NATIVE = native_order(FACTS, [1.0] * DIMENSION)
KINDS = pytest.mark.parametrize("kind", [Memory, AsyncMemory])
QDRANT = "mem0.vector_stores.qdrant"

Vectors = list[Any]
Tamper = Callable[[Vectors], Vectors]


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    return make(tmp_path, FACTS)


@pytest.fixture
def tamper(monkeypatch: pytest.MonkeyPatch) -> Callable[[Tamper], None]:
    """Change what is read back from the store."""
    honest = stores._READERS[QDRANT]

    def install(change: Tamper) -> None:
        def read(store: Any, ids: Sequence[str]) -> Vectors:
            return change(list(honest(store, ids)))

        monkeypatch.setitem(stores._READERS, QDRANT, read)

    return install


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "mempursuit.mem0"]


def refuse(*_: Any, **__: Any) -> Any:
    raise ConnectionError("refused")


# What the user's own search raises.


@KINDS
@pytest.mark.parametrize(
    "arguments",
    [
        {"filters": {}},
        {"filters": {"city": "Rome"}},
        {"filters": {"user_id": "two words"}},
        {"filters": {**USER, "n": {"gte": 1, "eq": 2}}},
        {"top_k": "3"},
        {"top_k": -1},
        {"top_k": True},
        {"top_k": None},
        {"threshold": 2},
        {"query": "  "},
        {"query": None},
        {"user_id": "ann"},
        {"reference_date": "2024-01-01"},
    ],
)
def test_wrong_arguments_raise_what_mem0_raises(
    kind: type[Any], arguments: dict[str, Any], tmp_path: Path
) -> None:
    memory = make(tmp_path, FACTS, kind)
    query, arguments = arguments.get("query", QUESTION), dict(arguments)
    arguments.pop("query", None)

    def outcome(rerank: bool) -> Any:
        try:
            return texts_of(search(memory, query, rerank=rerank, **arguments))
        except Exception as error:
            return type(error), str(error)

    expected = outcome(rerank=False)
    if isinstance(expected, list):
        pytest.skip(f"mem0ai {version('mem0ai')} takes {arguments or query!r}")
    with adapter.attach(memory):
        assert outcome(rerank=True) == expected


@KINDS
@pytest.mark.parametrize("part", ["embedding_model.embed", "vector_store.search"])
def test_what_is_down_raises_its_own_error(kind: type[Any], part: str, tmp_path: Path) -> None:
    memory = make(tmp_path, FACTS, kind)
    name, method = part.split(".")
    calls = []

    def down(*_: Any, **__: Any) -> Any:
        calls.append(1)
        raise ConnectionError("refused")

    setattr(getattr(memory, name), method, down)
    with adapter.attach(memory) as handle:
        with pytest.raises(ConnectionError, match="refused"):
            search(memory)
        if name == "embedding_model":
            assert len(calls) == 1
        else:
            assert memory.embedding_model.asked == [QUESTION]
    assert handle.stats().fallbacks == {}


# Trouble of ours.


@KINDS
def test_a_store_that_refuses_the_wide_search_is_asked_as_mem0_would(
    kind: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = make(tmp_path, FACTS, kind)
    honest = memory.vector_store.search

    def capped(query: str, vectors: Any, top_k: int, filters: Any) -> Any:
        if top_k > 100:
            raise ValueError("limit must be at most 100")
        return honest(query=query, vectors=vectors, top_k=top_k, filters=filters)

    memory.vector_store.search = capped
    with adapter.attach(memory) as handle, caplog.at_level(logging.WARNING):
        found = [texts_of(search(memory, top_k=10)) for _ in range(3)]
    assert found == [NATIVE[:10]] * 3
    assert handle.stats().fallbacks == {"wide_search_failed": 3}
    assert memory.embedding_model.asked == [QUESTION] * 3
    assert len(warnings_of(caplog)) == 1
    assert "pool_size" in warnings_of(caplog)[0]


@KINDS
def test_vectors_that_cannot_be_read_leave_mem0s_order_and_one_warning(
    kind: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, tamper: Any
) -> None:
    memory = make(tmp_path, FACTS, kind)
    tamper(refuse)
    with adapter.attach(memory) as handle, caplog.at_level(logging.WARNING):
        found = [search(memory, top_k=10) for _ in range(3)]
    assert [texts_of(rows) for rows in found] == [NATIVE[:10]] * 3
    assert {row["rerank_score"] for row in found[0]} == {0.0}
    assert handle.stats().fallbacks == {"ConnectionError": 3}
    assert handle.stats().searches == 3
    assert len(warnings_of(caplog)) == 1


def test_a_query_vector_that_cannot_be_seen_leaves_mem0s_order(
    memory: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Slotted:
        __slots__ = ()

        def embed(self, text: str, memory_action: str) -> list[float]:
            return [1.0] * DIMENSION

    memory.embedding_model = Slotted()
    with adapter.attach(memory) as handle, caplog.at_level(logging.WARNING):
        assert texts_of(search(memory, top_k=10)) == NATIVE[:10]
    assert handle.stats().fallbacks == {"no_query_vector": 1}
    assert len(warnings_of(caplog)) == 1


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        (None, "missing_vector"),
        ([1.0] * 3, "dimension_mismatch"),
        ([float("nan")] * DIMENSION, "not_finite"),
        ([0.0] * DIMENSION, "zero_vector"),
        ("text", "unreadable_vector"),
    ],
)
def test_a_memory_that_cannot_be_judged_keeps_its_place(
    bad: Any, cause: str, memory: Any, tamper: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def spoil(vectors: Vectors) -> Vectors:
        vectors[1] = vectors[50] = bad
        return vectors

    tamper(spoil)
    with adapter.attach(memory) as handle, caplog.at_level(logging.WARNING):
        found = [search(memory, top_k=10) for _ in range(3)]
    rest = {t: v for t, v in FACTS.items() if t not in (NATIVE[1], NATIVE[50])}
    expected = pursued(rest, 9)
    expected.insert(1, NATIVE[1])
    assert [texts_of(rows) for rows in found] == [expected] * 3
    assert found[0][1]["rerank_score"] == 0.0
    assert handle.stats().fallbacks == {cause: 3}
    assert len(warnings_of(caplog)) == 1


@KINDS
def test_a_memory_deleted_between_search_and_fetch_is_not_lost(
    kind: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make(tmp_path, FACTS, kind)
    honest = stores._READERS[QDRANT]

    def deleting(store: Any, ids: Sequence[str]) -> Any:
        store.delete(ids[0])
        return honest(store, ids)

    monkeypatch.setitem(stores._READERS, QDRANT, deleting)
    with adapter.attach(memory) as handle:
        rows = search(memory, top_k=10)
    assert len({row["id"] for row in rows}) == 10
    assert rows[0]["id"] == identifier(f"ann{NATIVE[0]}")
    assert handle.stats().fallbacks == {"missing_vector": 1}


def test_an_encoder_changed_half_way_through_the_stores_life(memory: Any, tamper: Any) -> None:
    """The store holds two dimensions; what has the query's is judged, the rest stays."""
    tamper(lambda vectors: [v if i % 2 else [*v, 0.0] for i, v in enumerate(vectors)])
    with adapter.attach(memory):
        texts = texts_of(search(memory, top_k=10))
    assert texts[0::2] == NATIVE[0:10:2]
    assert texts[1::2] == pursued({t: FACTS[t] for t in NATIVE[1::2]}, 5)


# The user's own arguments.


@KINDS
def test_every_argument_of_search_keeps_its_meaning(kind: type[Any], tmp_path: Path) -> None:
    memory = make(tmp_path, {}, kind)
    memory.embedding_model.vectors.update(FACTS)
    for n, (text, vector) in enumerate(FACTS.items()):
        expired = {"expiration_date": "2001-01-01"} if n % 3 == 0 else {}
        write(memory, {text: vector}, n=n, parity="even" if n % 2 == 0 else "odd", **expired)
    takes = inspect.signature(Memory.search).parameters
    cases: list[dict[str, Any]] = [
        {},
        {"threshold": 0.6},
        {"show_expired": True},
        {"threshold": 0.6, "show_expired": True},
        {"explain": True},
        {"filters": {**USER, "parity": "odd"}},
        {"filters": {**USER, "n": {"gte": 20, "lt": 70}}},
        {"filters": {**USER, "OR": [{"n": {"lt": 9}}, {"parity": {"eq": "odd"}}]}},
        {"filters": {**USER, "NOT": [{"parity": "odd"}]}},
    ]
    for arguments in cases:
        if not set(arguments) <= set(takes):
            continue  # this Mem0 is too old for it
        wide = search(memory, rerank=False, top_k=200, **arguments)
        allowed = {row["memory"]: FACTS[row["memory"]] for row in wide}
        assert 0 < len(allowed) <= 120
        with adapter.attach(memory):
            rows = search(memory, top_k=10, **arguments)
        assert texts_of(rows) == pursued(allowed, 10), arguments
        assert all(("score_details" in row) is ("explain" in arguments) for row in rows)


def test_an_empty_store_and_no_rows_wanted(tmp_path: Path) -> None:
    memory = make(tmp_path, {})
    with adapter.attach(memory):
        assert search(memory) == []
        write(memory, FACTS)
        assert search(memory, top_k=0) == []


def test_unicode_and_very_long_texts(tmp_path: Path) -> None:
    texts = ["Ünïcødé 🎈 漢字", "\u202eright to left", "x" * 200_000, "a\x00b"]
    odd = dict(zip(texts, FACTS.values(), strict=False))
    memory = make(tmp_path, {**FACTS, **odd})
    memory.embedding_model.vectors["¿dónde? " * 5000] = [1.0] * DIMENSION
    with adapter.attach(memory) as handle:
        rows = search(memory, "¿dónde? " * 5000, top_k=124)
        assert "🎈" in handle.explain()
    assert set(texts_of(rows)) == {*FACTS, *odd}


def test_texts_that_are_empty_are_not_embedded(tmp_path: Path) -> None:
    memory = make(tmp_path, {**FACTS, "   ": [1.0] * DIMENSION})
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(stores._READERS, QDRANT)
        with adapter.attach(memory):
            rows = search(memory, top_k=121)
    assert len(rows) == 121
    assert "   " not in memory.embedding_model.batches[0]
    assert len(memory.embedding_model.batches[0]) == 120


# Faults at random. MEMPURSUIT_FUZZ=10000 runs the full size.


def test_searches_survive_random_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[..., None]
) -> None:
    memory = make(tmp_path, FACTS)
    chance = random.Random(20240607)
    numbers = np.random.default_rng(20240607)
    injected: Counter[str] = Counter()
    asked: list[int] = []
    honest_read, honest_search = stores._READERS[QDRANT], memory.vector_store.search
    bad: list[Any] = [None, [], [1.0], [[1.0] * DIMENSION], ["a"] * DIMENSION, object(), "x", 7]
    bad += [[value] * DIMENSION for value in (0.0, float("nan"), float("inf"), 1e300, -1e-300)]

    def hit(fault: str, share: float) -> bool:
        struck = chance.random() < share
        injected[fault] += struck
        return struck

    def read(store: Any, ids: Sequence[str]) -> Any:
        if hit("reading fails", 0.05):
            raise chance.choice([ConnectionError, KeyError, MemoryError, RecursionError])("fault")
        vectors = list(honest_read(store, ids))
        if hit("bad vectors", 0.3):
            for _ in range(chance.randint(1, len(vectors))):
                vectors[chance.randrange(len(vectors))] = chance.choice(bad)
        if hit("vectors lost", 0.05):
            del vectors[chance.randrange(len(vectors)) :]
        if hit("nothing but noise", 0.05):
            return numbers.standard_normal((chance.randint(0, 99), chance.randint(1, 40)))
        return None if hit("no answer", 0.02) else vectors

    def searching(**arguments: Any) -> Any:
        # Mem0's own search, should ours have to fall back on it, is spared: it is the measure.
        first = not asked
        asked.append(arguments["top_k"])
        if first and hit("wide search fails", 0.05):
            raise TimeoutError("too wide")
        hits = honest_search(**arguments)
        if first and hit("doubled hits", 0.1):
            hits = hits[:5] + hits
        return hits

    monkeypatch.setitem(stores._READERS, QDRANT, read)
    memory.vector_store.search = searching
    searches = int(os.environ.get("MEMPURSUIT_FUZZ", "200"))
    exceptions = over = doubled = lost = 0
    with adapter.attach(memory, near_duplicate=0.97, discount="auto") as handle:
        for n in range(searches):
            k = chance.choice((1, chance.randint(2, 30), chance.randint(2, 140)))
            asked.clear()
            embedder = memory.embedding_model
            embedder.question = (1 + numbers.standard_normal(DIMENSION)).tolist()
            try:
                rows = search(memory, f"question {n}", top_k=k, threshold=0.0)
            except Exception:
                exceptions += 1
                continue
            ids = [row["id"] for row in rows]
            over += len(ids) > k
            doubled += len(ids) != len(set(ids))
            positive = sum(np.dot(v, embedder.question) >= 0 for v in FACTS.values())
            lost += len(ids) < min(k, positive, 60)
    assert (exceptions, over, doubled, lost) == (0, 0, 0, 0)
    assert set(injected) == {
        "reading fails",
        "bad vectors",
        "vectors lost",
        "nothing but noise",
        "no answer",
        "wide search fails",
        "doubled hits",
    }
    assert min(injected.values()) > 0
    assert handle.stats().searches + handle.stats().fallbacks["wide_search_failed"] == searches
    record_property("injected", dict(injected))
