"""MemoryBank's adapter on the FAISS store of today's langchain-community."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import faiss
import numpy as np
import pytest

from integration_tests.conformance import CountingEncoder, K, Memory
from integration_tests.conformance.data import make_world
from integration_tests.memorybank_faiss import (
    ONE_DIMENSION,
    FaissConformance,
    flat_index,
    labels_of,
)
from mempursuit_adapters.memorybank import attach, install, pool, uninstall
from mempursuit_core import select

pytest.importorskip("langchain_community", reason="langchain-community is not installed")

from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.vectorstores.faiss import FAISS
from langchain_community.vectorstores.utils import DistanceStrategy
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

WORLD = make_world()
QUERY = WORLD.questions[0]


class SuiteEmbeddings(Embeddings):
    def __init__(self, encoder: CountingEncoder) -> None:
        self.encoder = encoder

    def embed_query(self, text: str) -> list[float]:
        return self.encoder.encode_one(text).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.encode(texts).tolist()


def make_store(
    memories: Sequence[Memory] = WORLD.memories,
    encoder: CountingEncoder | None = None,
    index: Any = None,
    **options: Any,
) -> FAISS:
    """Return a store of the memories, of which every second one is marked as even."""
    documents = {
        m.key: Document(page_content=m.text, metadata={"even": i % 2 == 0})
        for i, m in enumerate(memories)
    }
    return FAISS(
        SuiteEmbeddings(encoder or CountingEncoder(WORLD)),
        flat_index(memories) if index is None else index,
        InMemoryDocstore(documents),
        labels_of(memories),
        **options,
    )


class TestLangChainCommunity(FaissConformance):
    """The suite."""

    cannot: ClassVar = {"missing_vector": ONE_DIMENSION, "other_dimension": ONE_DIMENSION}

    def build(self, memories: Sequence[Memory], encoder: CountingEncoder, home: Path) -> FAISS:
        return make_store(memories, encoder)

    async def asearch(self, target: FAISS, query: str, k: int) -> Any:
        return await target.asimilarity_search_with_score(query, k)

    def other_calls(self, target: FAISS) -> Mapping[str, Callable[[], object]]:
        return {
            **super().other_calls(target),
            "maximal marginal relevance": lambda: contents(
                target.as_retriever(search_type="mmr", search_kwargs={"k": K}).invoke(self.query)
            ),
            "get": lambda: contents(target.get_by_ids(["m003"])),
            "add": lambda: target.add_texts(["a new one"], ids=["m900"]),
            "delete": lambda: target.delete(["m003"]),
        }


def contents(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


def picks(store: FAISS, k: int = K, keep: Callable[[int], bool] = lambda label: True) -> list[str]:
    """Return what the core picks from the whole store's labels that pass `keep`."""
    found = pool(store, QUERY)
    kept = [j for j, label in enumerate(found.ids) if keep(label)]
    chosen = select(found.query, np.asarray(found.vectors)[kept], k).indices
    return [found.texts[kept[i]] for i in chosen]


SEARCHES: dict[str, Callable[[FAISS], list[str]]] = {
    "similarity_search": lambda s: contents(s.similarity_search(QUERY, k=K)),
    "similarity_search_with_score": lambda s: contents(
        [d for d, _ in s.similarity_search_with_score(QUERY, k=K)]
    ),
    "similarity_search_by_vector": lambda s: contents(
        s.similarity_search_by_vector(s.embeddings.embed_query(QUERY), K)
    ),
    "similarity_search_with_relevance_scores": lambda s: contents(
        [d for d, _ in s._similarity_search_with_relevance_scores(QUERY, K)]
    ),
    "as_retriever": lambda s: contents(s.as_retriever(search_kwargs={"k": K}).invoke(QUERY)),
    "asimilarity_search": lambda s: contents(asyncio.run(s.asimilarity_search(QUERY, K))),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_every_similarity_search_is_covered(search: Callable[[FAISS], list[str]]) -> None:
    store = make_store()
    native, expected = search(store), picks(store)
    assert native != expected
    with attach(store):
        assert search(store) == expected
    install()
    try:
        assert search(store) == expected
    finally:
        uninstall()
    assert search(store) == native


def test_a_filter_limits_the_pool_and_still_fills_the_budget() -> None:
    store = make_store()
    expected = picks(store, keep=lambda label: label % 2 == 0)
    with attach(store) as handle:
        by_dict = store.similarity_search(QUERY, k=K, filter={"even": True}, fetch_k=3)
        by_function = store.similarity_search(QUERY, k=K, filter=lambda m: m["even"], fetch_k=3)
    assert contents(by_dict) == contents(by_function) == expected
    assert len(expected) == K
    assert handle.stats().fallbacks == {}
    # Without us the filter sees the 3 nearest only.
    assert len(store.similarity_search(QUERY, k=K, filter={"even": True}, fetch_k=3)) < K


def test_a_score_threshold_limits_the_pool() -> None:
    store = make_store()
    found = pool(store, QUERY)
    threshold = sorted(found.items)[6]
    near = {
        label for label, score in zip(found.ids, found.items, strict=True) if score <= threshold
    }
    assert len(near) == 7
    expected = picks(store, keep=near.__contains__)
    assert expected != picks(store)
    with attach(store):
        result = store.similarity_search(QUERY, k=K, score_threshold=threshold)
    assert contents(result) == expected


def test_inner_products_count_from_the_largest() -> None:
    index = faiss.IndexFlatIP(flat_index(WORLD.memories).d)
    index.add(np.stack([m.vector for m in WORLD.memories]))
    store = make_store(index=index, distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT)
    found = pool(store, QUERY)
    assert list(found.items) == sorted(found.items, reverse=True)
    threshold = found.items[6]
    expected = picks(store, keep=set(found.ids[:7]).__contains__)
    assert expected != picks(store)
    with attach(store):
        assert contents(store.similarity_search(QUERY, k=K)) == picks(store)
        result = store.similarity_search_with_score(QUERY, k=K, score_threshold=threshold)
    scores = dict(zip(found.texts, found.items, strict=True))
    assert [d.page_content for d, _ in result] == expected
    assert [score for _, score in result] == [pytest.approx(scores[t]) for t in expected]


def test_scores_are_those_of_the_memories_picked() -> None:
    store = make_store(normalize_L2=True)
    found = pool(store, QUERY)
    scores = dict(zip(found.texts, found.items, strict=True))
    with attach(store):
        result = store.similarity_search_with_score(QUERY, k=K)
    assert [d.page_content for d, _ in result] == picks(store)
    for document, score in result:
        assert score == pytest.approx(scores[document.page_content])


def test_a_filter_that_fails_is_the_users_own_error() -> None:
    store = make_store()

    def broken(metadata: dict[str, Any]) -> bool:
        raise LookupError("no such field")

    with attach(store), pytest.raises(LookupError, match="no such field"):
        store.similarity_search(QUERY, k=K, filter=broken)


def test_saving_and_pickling_see_the_index_itself(tmp_path: Path) -> None:
    store = make_store()
    with attach(store):
        assert type(store.index) is faiss.IndexFlatL2
        store.save_local(str(tmp_path))
        again = FAISS.load_local(
            str(tmp_path), store.embeddings, allow_dangerous_deserialization=True
        )
        thawed = FAISS.deserialize_from_bytes(
            store.serialize_to_bytes(), store.embeddings, allow_dangerous_deserialization=True
        )
        assert pickle.loads(pickle.dumps(store.index)).ntotal == len(WORLD.memories)
        covered = contents(store.similarity_search(QUERY, k=K))
    for other in (again, thawed):
        assert contents(other.similarity_search(QUERY, k=K)) == contents(
            store.similarity_search(QUERY, k=K)
        )
        assert contents(other.similarity_search(QUERY, k=K)) != covered


def test_merging_stores_works_while_attached() -> None:
    store, other = make_store(WORLD.memories[:24]), make_store(WORLD.memories[24:])
    with attach(store):
        store.merge_from(other)
        assert contents(store.similarity_search(QUERY, k=K)) == picks(store)
        assert len(pool(store, QUERY)) == len(WORLD.memories)


def test_a_subclass_that_calls_super_is_read_once() -> None:
    class Logged(FAISS):
        def similarity_search_with_score_by_vector(self, *args: Any, **kwargs: Any) -> Any:
            self.seen = getattr(self, "seen", 0) + 1
            return super().similarity_search_with_score_by_vector(*args, **kwargs)

    plain = make_store()
    store = Logged(plain.embeddings, plain.index, plain.docstore, plain.index_to_docstore_id)
    handle = install()
    try:
        assert contents(store.similarity_search(QUERY, k=K)) == picks(plain)
        assert handle.stats().searches == 1
        assert store.seen == 1
    finally:
        uninstall()
    with attach(store) as handle:
        assert contents(store.similarity_search(QUERY, k=K)) == picks(plain)
        assert handle.stats().searches == 1
        assert store.seen == 2
