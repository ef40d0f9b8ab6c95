"""The FAISS side of MemoryBank's adapter: what the index is asked, and what it seems to answer."""

from __future__ import annotations

import copy
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import pytest

from mempursuit_adapters import Handle
from mempursuit_adapters.memorybank import attach, install, pool, uninstall
from mempursuit_core import AdaptiveStop

# Two tellings of one fact (a, b), what else is asked for (c), and what nobody asked for (d).
VECTORS = {
    "a": (0.995, 0.0995),
    "b": (0.993, 0.119),
    "c": (0.0, 1.0),
    "d": (-1.0, 0.0),
}
QUERY = (2.0, 1.0)
NATIVE, PICKED = ["b", "a"], ["b", "c"]
FLT_MAX = float(np.finfo(np.float32).max)


class Docstore:
    def __init__(self, texts: list[str]) -> None:
        self._dict = {f"id-{text}": Text(text) for text in texts}

    def search(self, search: str) -> Text:
        return self._dict[search]


class Text:
    def __init__(self, page_content: str) -> None:
        self.page_content = page_content


class Store:
    """A LangChain FAISS store with what the adapter meets of it."""

    def __init__(self, index: Any = None, vectors: dict[str, Any] = VECTORS) -> None:
        self.index = faiss.IndexFlatL2(2) if index is None else index
        if vectors and not self.index.ntotal:
            self.index.add(np.array(list(vectors.values()), dtype=np.float32))
        self.docstore = Docstore(list(vectors))
        self.index_to_docstore_id = dict(enumerate(f"id-{text}" for text in vectors))
        self.embedded = 0

    def _embed_query(self, query: Any) -> Any:
        self.embedded += 1
        return query

    def similarity_search_with_score_by_vector(
        self, embedding: Any, k: int = 2
    ) -> list[tuple[str, float]]:
        scores, labels = self.index.search(np.array([embedding], dtype=np.float32), k)
        assert scores.shape == labels.shape == (1, k)
        self.seen = [(int(i), float(s)) for i, s in zip(labels[0], scores[0], strict=True)]
        return [
            (self.docstore.search(self.index_to_docstore_id[i]).page_content, s)
            for i, s in self.seen
            if i != -1
        ]

    def similarity_search_with_score(self, query: Any, k: int = 2) -> list[tuple[str, float]]:
        return self.similarity_search_with_score_by_vector(self._embed_query(query), k)

    def similarity_search_by_vector(self, embedding: Any, k: int = 2) -> list[str]:
        return [text for text, _ in self.similarity_search_with_score_by_vector(embedding, k)]

    def mmr(self, k: int = 2) -> list[int]:
        _, labels = self.index.search(np.array([QUERY], dtype=np.float32), k)
        return [int(i) for i in labels[0]]


class Retrieval:
    """MemoryBank's reader with what the adapter meets of it."""

    top_k = 2

    def search_memory(self, query: Any, vector_store: Any, cur_date: str = "") -> list[str]:
        return sorted(
            text for text, _ in vector_store.similarity_search_with_score(query, k=self.top_k)
        )


def texts(store: Any, k: int = 2) -> list[str]:
    return [text for text, _ in store.similarity_search_with_score(QUERY, k=k)]


@pytest.fixture(autouse=True)
def _nothing_stays_installed() -> Any:
    yield
    uninstall()


def test_the_picks_are_the_seeds_with_their_own_distances() -> None:
    store = Store()
    assert texts(store) == NATIVE
    with attach(store) as handle:
        found = store.similarity_search_with_score(QUERY, k=2)
    assert [text for text, _ in found] == PICKED
    # |q - b|² = 1.007² + 0.881², |q - c|² = 2²
    assert [score for _, score in found] == [pytest.approx(1.790210), pytest.approx(4.0)]
    assert store.embedded == 2
    assert handle.stats().fallbacks == {}
    assert "came in  2  (native rank 3, score" in handle.explain()
    assert texts(store) == NATIVE


def test_pool_is_the_index_in_its_own_order() -> None:
    store = Store()
    found = pool(store, QUERY, pool_size=3)
    assert found.ids == [1, 0, 2]
    assert found.texts == ["b", "a", "c"]
    assert np.asarray(found.query).tolist() == [2.0, 1.0]
    assert np.asarray(found.vectors) == pytest.approx(np.array([VECTORS[t] for t in "bac"]))
    assert found.items == [pytest.approx(1.790210), pytest.approx(1.820925), pytest.approx(4.0)]
    assert store.embedded == 1
    with attach(store) as handle:
        assert pool(store, QUERY, pool_size=3).ids == [1, 0, 2]
    assert handle.stats().searches == 0


def test_pool_size_bounds_what_can_be_picked() -> None:
    store = Store()
    with attach(store, pool_size=2):
        assert sorted(texts(store)) == sorted(NATIVE)
        assert sorted(texts(store, k=3)) == ["a", "b", "c"]  # asking for more widens the pool


def test_k_replaces_the_frameworks_number_of_seeds() -> None:
    store = Store()
    with attach(store, k=3):
        assert texts(store, k=1) == texts(store, k=4) == ["b", "c", "a"]
    with attach(store, k=1):
        assert texts(store) == ["b"]


@pytest.mark.parametrize(
    ("make", "worst"), [(faiss.IndexFlatL2, FLT_MAX), (faiss.IndexFlatIP, -FLT_MAX)]
)
def test_missing_seeds_are_padded_as_faiss_does(make: Callable[[int], Any], worst: float) -> None:
    store = Store(make(2))
    store.similarity_search_with_score(QUERY, k=6)
    assert store.seen[4:] == [(-1, worst)] * 2
    with attach(store):
        assert len(texts(store, k=6)) == 4
        assert store.seen[4:] == [(-1, worst)] * 2


def test_an_early_stop_hands_back_fewer_seeds() -> None:
    store = Store()
    with attach(store, stop=AdaptiveStop(tolerance=0.9, patience=1)):
        assert texts(store, k=3) == ["b"]
        assert store.seen[1:] == [(-1, FLT_MAX)] * 2


def test_an_empty_index_finds_nothing_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(vectors={})
    with attach(store):
        assert texts(store) == []
    assert caplog.records == []


@pytest.mark.parametrize("kind", ["IVF2,Flat", "HNSW4,Flat", "IDMap2,Flat", "SQ8"])
def test_indexes_that_give_their_vectors_back(kind: str) -> None:
    store = Store(trained(kind))
    assert texts(store) == NATIVE
    with attach(store) as handle:
        assert texts(store) == PICKED
    assert handle.stats().fallbacks == {}


def test_an_index_that_cannot_keeps_its_own_order(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(trained("IDMap,Flat"))
    with attach(store) as handle, caplog.at_level(logging.WARNING):
        assert texts(store) == texts(store) == NATIVE
    assert len(caplog.records) == 1
    assert "framework's own order" in caplog.text
    assert list(handle.stats().fallbacks.values()) == [2]


def trained(kind: str) -> Any:
    rows = np.array(list(VECTORS.values()), dtype=np.float32)
    index = faiss.index_factory(2, kind)
    index.train(np.concatenate([rows] * 25))
    if "IDMap" in kind:
        index.add_with_ids(rows, np.arange(len(rows)))
    else:
        index.add(rows)
    if hasattr(index, "nprobe"):
        index.nprobe = 2
    return index


class BatchStore(Store):
    """A store that asks the index for several queries at once."""

    def similarity_search_with_score_by_vector(self, embedding: Any, k: int = 2) -> Any:
        rows = np.atleast_2d(np.array(embedding, dtype=np.float32))
        return self.index.search(rows, k)


def test_several_queries_in_one_call_are_picked_each() -> None:
    store = BatchStore()
    batch = [QUERY, (-2.0, 1.0)]
    _, native = store.similarity_search_with_score_by_vector(batch)
    assert native.tolist() == [[1, 0], [3, 2]]
    with attach(store) as handle:
        scores, labels = store.similarity_search_with_score_by_vector(batch)
    assert labels.tolist() == [[1, 2], [3, 2]]
    assert scores[1].tolist() == [pytest.approx(2.0), pytest.approx(4.0)]
    assert (scores.dtype, labels.dtype) == (np.float32, np.int64)
    assert handle.stats().searches == 2


def test_a_search_with_options_of_its_own_is_the_indexs() -> None:
    class Choosy(Store):
        def similarity_search_with_score_by_vector(self, embedding: Any, k: int = 2) -> Any:
            only = faiss.SearchParameters(sel=faiss.IDSelectorRange(2, 4))
            rows = np.array([embedding], dtype=np.float32)
            return self.index.search(rows, k, params=only)[1].tolist()

    store = Choosy()
    with attach(store):
        assert store.similarity_search_with_score_by_vector(QUERY) == [[2, 3]]


def test_only_the_similarity_search_is_answered_with_picks() -> None:
    store = Store()
    index = store.index
    with attach(store):
        assert store.index is index
        assert store.mmr() == [1, 0]
        assert (
            faiss.serialize_index(store.index).tobytes() == faiss.serialize_index(index).tobytes()
        )
        assert store.similarity_search_by_vector(QUERY) == PICKED


def test_what_a_search_writes_to_the_store_stays() -> None:
    store = Store()
    with attach(store):
        texts(store)
    assert [label for label, _ in store.seen] == [1, 2]


def test_a_deep_copy_reads_its_own_index() -> None:
    store = Store()
    with attach(store):
        twin = copy.deepcopy(store)
        twin.index.reset()
        assert texts(twin) == []
        assert texts(store) == PICKED


def test_errors_of_the_framework_stay_its_own() -> None:
    store = Store()
    outcomes = []
    for attached in (False, True):
        handle = attach(store) if attached else None
        for call in (
            lambda: store.similarity_search_with_score_by_vector((1.0, 2.0, 3.0)),
            lambda: store.similarity_search_with_score_by_vector(),
            lambda: store.similarity_search_with_score_by_vector(QUERY, nonsense=1),
            lambda: store.similarity_search_with_score(QUERY, k=0),
        ):
            with pytest.raises((AssertionError, TypeError)) as caught:
                call()
            outcomes.append((caught.type, str(caught.value)))
        if handle:
            handle.detach()
    half = len(outcomes) // 2
    assert outcomes[:half] == outcomes[half:]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 2.5}, "k must be"),
        ({"k": 5, "pool_size": 4}, "pool_size must be at least k"),
        ({"pool_size": 0}, "pool_size"),
        ({"preset": "best"}, "preset"),
        ({"discount": 2.0}, "discount"),
    ],
)
@pytest.mark.parametrize(
    "verb", [lambda **o: attach(Store(), **o), lambda **o: install(Store, **o)]
)
def test_a_wrong_argument_is_named(
    verb: Callable[..., Handle], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        verb(**options)
    assert texts(Store()) == NATIVE


@pytest.mark.parametrize("target", [None, object(), faiss.IndexFlatL2(2), {"index": 1}])
def test_a_wrong_target_is_refused(target: Any) -> None:
    with pytest.raises(TypeError, match="FAISS vector store or MemoryBank's"):
        attach(target)


def test_a_retrieval_covers_every_store_it_reads() -> None:
    retrieval, stores = Retrieval(), [Store(), Store()]
    native = Store()
    with attach(retrieval) as handle:
        assert [retrieval.search_memory(QUERY, store) for store in stores] == [["b", "c"]] * 2
        assert retrieval.search_memory(query=QUERY, vector_store=stores[0]) == ["b", "c"]
        assert texts(stores[0]) == NATIVE  # the store itself is not attached
        assert Retrieval().search_memory(QUERY, native) == ["a", "b"]
    assert handle.stats().searches == 3
    assert retrieval.search_memory(QUERY, stores[0]) == ["a", "b"]
    assert "search_memory" not in vars(retrieval)


def test_a_retrieval_passes_its_own_arguments_on() -> None:
    class Dated(Retrieval):
        def search_memory(self, query: Any, vector_store: Any, cur_date: str = "") -> list[str]:
            return [cur_date, *super().search_memory(query, vector_store)]

    retrieval = Dated()
    with attach(retrieval):
        assert retrieval.search_memory(QUERY, Store(), cur_date="today") == ["today", "b", "c"]


def test_a_store_that_cannot_be_viewed_keeps_its_own_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Slotted:
        __slots__ = ("inner",)

        def __init__(self) -> None:
            self.inner = Store()

        def similarity_search_with_score(self, query: Any, k: int) -> Any:
            return self.inner.similarity_search_with_score(query, k)

    retrieval = Retrieval()
    with attach(retrieval), caplog.at_level(logging.WARNING):
        assert retrieval.search_memory(QUERY, Slotted()) == ["a", "b"]
    assert len(caplog.records) == 1


def test_install_covers_stores_made_before_and_after() -> None:
    class Fresh(Store):
        pass

    before = Fresh()
    handle = install(Fresh)
    after = Fresh()
    assert texts(before) == texts(after) == PICKED
    assert after.similarity_search_by_vector(QUERY) == PICKED
    assert [t for t, _ in after.similarity_search_with_score_by_vector(QUERY)] == PICKED
    assert handle.stats().searches == 4
    assert texts(Store()) == NATIVE
    with pytest.raises(RuntimeError, match="already installed"):
        install(Fresh)
    with pytest.raises(RuntimeError, match="uninstall"):
        attach(after)
    uninstall()
    assert texts(before) == NATIVE
    assert not any(name.startswith("similarity") for name in vars(Fresh))


def test_install_survives_memorybanks_own_replacement() -> None:
    class Fresh(Store):
        pass

    def of_memorybank(self: Any, embedding: Any, k: int = 4) -> list[tuple[str, float]]:
        _, labels = self.index.search(np.array([embedding], dtype=np.float32), k)
        return [("+".join(f"{i}" for i in sorted(labels[0])), 0.0)]

    install(Fresh)
    Fresh.similarity_search_with_score_by_vector = of_memorybank  # as load_memory_index does
    store = Fresh()
    assert texts(store) == ["1+2"]
    with pytest.raises(RuntimeError, match="uninstall"):
        attach(store)
    uninstall()
    assert texts(store) == ["0+1"]
    assert vars(Fresh)["similarity_search_with_score_by_vector"] is of_memorybank


def test_installed_and_attached_a_search_is_read_once() -> None:
    class Fresh(Store):
        pass

    store, retrieval = Fresh(), Retrieval()
    own = attach(store, k=1)
    outer = attach(retrieval, k=3)
    everywhere = install(Fresh)
    assert texts(store) == ["b"]  # the nearest handle decides
    assert retrieval.search_memory(QUERY, store) == ["b"]
    assert retrieval.search_memory(QUERY, Fresh()) == ["a", "b", "c"]
    assert texts(Fresh()) == PICKED
    assert [h.stats().searches for h in (own, outer, everywhere)] == [2, 1, 1]
    own.detach()
    assert texts(store) == PICKED
    outer.detach()
    assert retrieval.search_memory(QUERY, store) == ["b", "c"]


def test_a_subclass_that_calls_super_is_read_by_the_nearest_handle() -> None:
    class Fresh(Store):
        pass

    class Logged(Fresh):
        def similarity_search_with_score_by_vector(self, *args: Any, **kwargs: Any) -> Any:
            return super().similarity_search_with_score_by_vector(*args, **kwargs)

    store = Logged()
    own, everywhere = attach(store, k=1), install(Fresh)
    assert texts(store) == ["b"]
    assert texts(Logged()) == PICKED
    assert [h.stats().searches for h in (own, everywhere)] == [1, 1]
    own.detach()


def test_install_without_langchain_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("langchain_community", "langchain"):
        monkeypatch.setitem(sys.modules, f"{package}.vectorstores.faiss", None)
    with pytest.raises(ImportError, match="pip install langchain-community"):
        install()


def test_concurrent_searches_do_not_meet() -> None:
    rng = np.random.default_rng(0)
    rows = {f"m{i}": row for i, row in enumerate(rng.normal(size=(60, 8)).astype(np.float32))}
    index = faiss.IndexFlatL2(8)
    store = Store(index, rows)
    queries = rng.normal(size=(16, 8)).astype(np.float32)
    start, found = threading.Barrier(16), {}
    with attach(store, pool_size=20) as handle:

        def by_query(i: int) -> list[str]:
            return [t for t, _ in store.similarity_search_with_score(queries[i], k=5)]

        alone = [by_query(i) for i in range(16)]
        assert len({tuple(a) for a in alone}) == 16

        def work(i: int) -> None:
            start.wait(timeout=30)
            found[i] = [by_query((i + j) % 16) for j in range(16)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
    assert found == {i: [alone[(i + j) % 16] for j in range(16)] for i in range(16)}
    assert handle.stats().fallbacks == {}
