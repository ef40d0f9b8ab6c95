"""The LightMem adapter's own rules, over a searcher that is a list."""

from __future__ import annotations

import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mempursuit_adapters import lightmem
from mempursuit_core import AdaptiveStop, select

# b and c repeat a; d and e are each close to another part of the query.
VECTORS = {
    "a": [1.0, 0.0, 0.0, 0.1],
    "b": [1.0, 0.0, 0.0, 0.2],
    "c": [1.0, 0.0, 0.1, 0.2],
    "d": [0.0, 1.0, 0.0, 0.1],
    "e": [0.0, 0.0, 1.0, 0.1],
    "f": [0.0, 0.0, 0.0, 1.0],
}
QUERY = [1.0, 0.5, 0.4, 0.0]


def cosine(a: list[float], b: list[float]) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


ORDER = sorted(VECTORS, key=lambda n: -cosine(QUERY, VECTORS[n]))
PICKS = [ORDER[i] for i in select(QUERY, [VECTORS[n] for n in ORDER], 3).indices]


class Embedder:
    calls = 0

    def embed(self, text: str) -> list[float]:
        self.calls += 1
        return QUERY


class ListSearcher:
    collection_name = "memories"

    def __init__(self) -> None:
        self.client = self
        self.limits: list[Any] = []

    def search(
        self, query_vector: list[float], limit: int = 5, filters: Any = None, **_: Any
    ) -> list[dict[str, Any]]:
        self.limits.append(limit)
        return [
            {"id": n, "score": cosine(query_vector, VECTORS[n]), "payload": {"memory": n}}
            for n in ORDER[:limit]
        ]

    def retrieve(self, collection_name: str, ids: list[str], **_: Any) -> list[Any]:
        assert collection_name == self.collection_name
        # Qdrant promises no order.
        return [types.SimpleNamespace(id=i, vector=VECTORS[i]) for i in sorted(ids, reverse=True)]


class Memory:
    retrieve_strategy = "embedding"

    def __init__(self) -> None:
        self.text_embedder = Embedder()
        self.embedding_retriever = ListSearcher()

    def retrieve(self, query: str, limit: int = 10, filters: Any = None) -> list[str]:
        hits = self.embedding_retriever.search(
            query_vector=self.text_embedder.embed(query),
            limit=limit,
            filters=filters,
            return_full=True,
        )
        return [hit["payload"]["memory"] for hit in hits]


class EntryRetriever:
    """Scores a list in Python, as the retriever of LightMem's LoCoMo experiment does."""

    def __init__(self, embedder: Any) -> None:
        self.embedder = embedder

    def retrieve(self, entries: list[Any], query_text: str, limit: int = 20) -> list[Any]:
        query = self.embedder.embed(query_text)
        found = [
            {"id": str(e["id"]), "score": cosine(query, e["vector"]), "payload": e["payload"]}
            for e in entries
            if e["vector"] is not None
        ]
        return sorted(found, key=lambda e: -e["score"])[:limit]


def entries(field: str = "memory") -> list[Any]:
    return [{"id": n, "vector": v, "payload": {field: n}} for n, v in sorted(VECTORS.items())]


def test_the_hand_made_data_tells_pursuit_from_relevance() -> None:
    assert set(ORDER[:3]) == {"a", "b", "c"}
    assert {"d", "e"} < set(PICKS)


def test_only_retrieve_gives_the_picks() -> None:
    memory = Memory()
    with lightmem.attach(memory):
        assert memory.retrieve("q", limit=3) == PICKS
        assert [h["id"] for h in memory.embedding_retriever.search(QUERY, limit=3)] == ORDER[:3]
        assert memory.text_embedder.calls == 1
    assert memory.retrieve("q", limit=3) == ORDER[:3]


def test_dials_reach_the_pursuit() -> None:
    for dials in ({"discount": 0.0}, {"stop": AdaptiveStop(tolerance=1.0, patience=1)}):
        memory = Memory()
        with lightmem.attach(memory, **dials):
            found = memory.retrieve("q", limit=3)
        candidates = [VECTORS[n] for n in ORDER]
        expected = select(QUERY, candidates, 3, **dials)  # type: ignore[arg-type]
        assert found == [ORDER[i] for i in expected.indices] != PICKS


@pytest.mark.parametrize("limit", [0, -1, None])
def test_odd_limits_are_lightmems_own_business(limit: Any) -> None:
    memory = Memory()
    native = memory.retrieve("q", limit=limit)
    with lightmem.attach(memory) as handle:
        assert memory.retrieve("q", limit=limit) == native
    assert memory.embedding_retriever.limits == [limit, limit]
    assert handle.stats().searches == 0


def test_a_numpy_limit_is_a_limit() -> None:
    memory = Memory()
    with lightmem.attach(memory):
        assert memory.retrieve("q", limit=np.int64(3)) == PICKS  # type: ignore[arg-type]


def test_tags_without_a_rule_to_read_them_leave_lightmems_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Tagged(Memory):
        def retrieve(self, query: str, limit: int = 10, *, boundmem_tags: Any = None) -> list[str]:  # type: ignore[override]
            return super().retrieve(query, limit)

    memory = Tagged()
    with lightmem.attach(memory), caplog.at_level(logging.WARNING, "mempursuit"):
        assert memory.retrieve("q", limit=3, boundmem_tags="home") == ORDER[:3]
        assert memory.retrieve("q", limit=3) == PICKS
    assert "no filter_by_tags" in caplog.text


def test_a_context_only_memory_is_refused() -> None:
    memory = types.SimpleNamespace(retrieve=lambda query: [], retrieve_strategy="context")
    with pytest.raises(ValueError, match=r"retrieve_strategy is 'context'.*'hybrid'"):
        lightmem.attach(memory)


def test_a_hybrid_memory_is_read_through_its_embedding_store() -> None:
    memory = Memory()
    memory.retrieve_strategy = "hybrid"
    with lightmem.attach(memory):
        assert memory.retrieve("q", limit=3) == PICKS


def test_what_is_no_memory_is_refused() -> None:
    with pytest.raises(TypeError, match=r"target must be a LightMemory.*got dict"):
        lightmem.attach({})
    memory = Memory()
    memory.embedding_retriever = types.SimpleNamespace(search=print)  # type: ignore[assignment]
    with pytest.raises(TypeError, match="SimpleNamespace has no client and no collection_name"):
        lightmem.attach(memory)


@pytest.mark.parametrize(
    "attach", [lightmem.attach, lambda _, **kwargs: lightmem.install(**kwargs)]
)
@pytest.mark.parametrize(
    ("argument", "value"), [("pool_size", 0), ("preset", "best"), ("discount", 2.0)]
)
def test_bad_arguments_are_named(attach: Callable[..., Any], argument: str, value: Any) -> None:
    with pytest.raises(ValueError, match=argument):
        attach(Memory(), **{argument: value})


def test_install_says_where_lightmem_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightmem", None)
    with pytest.raises(ImportError, match=r"github\.com/zjunlp/LightMem.*placeholder"):
        lightmem.install()
    lightmem.uninstall()


class TestEntryRetriever:
    def test_returns_the_picks_with_one_embedding(self) -> None:
        retriever = EntryRetriever(Embedder())
        native = retriever.retrieve(entries(), "q")
        pool = lightmem.entries_pool(retriever, entries(), "q", pool_size=4)
        assert list(pool.ids) == ORDER[:4]
        assert pool.query == QUERY
        retriever.embedder.calls = 0
        with lightmem.attach(retriever) as handle:
            found = retriever.retrieve(entries(), "q", limit=3)
        assert [e["id"] for e in found] == PICKS
        assert all(e in native for e in found)
        assert retriever.embedder.calls == 1
        assert handle.last is not None
        assert list(handle.last.pool_ids) == ORDER
        assert vars(retriever) == {"embedder": retriever.embedder}

    def test_summaries_keep_their_order(self) -> None:
        retriever = EntryRetriever(Embedder())
        with lightmem.attach(retriever) as handle:
            found = retriever.retrieve(entries("summary"), "q", limit=3)
        assert [e["id"] for e in found] == ORDER[:3]
        assert handle.stats().searches == 0

    def test_unusable_vectors_leave_the_order_and_one_warning(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Lossy(Embedder):
            def embed(self, text: str) -> list[float]:
                return [*super().embed(text)[:3], float("nan")]

        class IgnoresLast(EntryRetriever):
            def retrieve(self, entries: list[Any], query_text: str, limit: int = 20) -> list[Any]:
                self.embedder.embed(query_text)
                return [{"id": n, "score": 0.0, "payload": {"memory": n}} for n in ORDER[:limit]]

        retriever = IgnoresLast(Lossy())
        with lightmem.attach(retriever), caplog.at_level(logging.WARNING, "mempursuit"):
            for _ in range(2):
                found = retriever.retrieve(entries(), "q", limit=3)
                assert [e["id"] for e in found] == ORDER[:3]
        assert len(caplog.records) == 1

    def test_two_retrievers_may_share_an_embedder(self) -> None:
        embedder = Embedder()
        first, second = EntryRetriever(embedder), EntryRetriever(embedder)
        with lightmem.attach(first), lightmem.attach(second, discount=0.0):
            assert [e["id"] for e in first.retrieve(entries(), "q", 3)] == PICKS
            assert [e["id"] for e in second.retrieve(entries(), "q", 3)] == ORDER[:3]

    def test_a_failing_embedder_fails_as_it_does_without_us(self) -> None:
        class Broken(Embedder):
            def embed(self, text: str) -> list[float]:
                raise ConnectionError("no embeddings")

        retriever = EntryRetriever(Broken())
        with lightmem.attach(retriever), pytest.raises(ConnectionError, match="no embeddings"):
            retriever.retrieve(entries(), "q", 3)
