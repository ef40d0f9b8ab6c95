"""The LightMem adapter over the real Qdrant: the evaluator's port, and LightMem's own source."""

from __future__ import annotations

import logging
import re
import shutil
import sys
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integration_tests.lightmem_stores import (
    KINDS,
    QUERY,
    SIZE,
    CountingEmbedder,
    fill,
    make_vectors,
    open_store,
    point_id,
    source_module,
)
from mempursuit_adapters import lightmem
from mempursuit_core import select
from mempursuit_eval.ports import lightmem as port

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"discount": 1.0, "near_duplicate": None},
    "auto": {"discount": "auto", "near_duplicate": 0.95},
}


def names(lines: list[str]) -> list[str]:
    """Return which memories LightMem's formatted strings show, in order."""
    return [re.search(r"memory \d\d of topic \d+$", line).group() for line in lines]  # type: ignore[union-attr]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store on disk; both kinds read the same files."""
    folder = tmp_path_factory.mktemp("lightmem") / "store"
    memory = open_store("port", None, folder)
    fill(memory, make_vectors())
    memory.embedding_retriever.client.close()
    return folder


@pytest.fixture
def memory(kind: str, filled: Path, tmp_path: Path) -> Iterator[Any]:
    shutil.copytree(filled, tmp_path / "store")
    memory = open_store(kind, CountingEmbedder(make_vectors()), tmp_path / "store")
    yield memory
    memory.embedding_retriever.client.close()


class Tampered:
    """A Qdrant client whose answers a test may spoil."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.searches = 0
        self.reads = 0
        self.spoil_points: Any = lambda points: points
        self.bare = False  # search answers carry no vectors, so they must be read by id
        self.spoil_vector: Any = lambda vector: vector  # of what a search answers
        self.widest: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def query_points(self, *args: Any, **kwargs: Any) -> Any:
        self.searches += 1
        if self.widest is not None and kwargs["limit"] > self.widest:
            raise ConnectionError("too wide")
        points = self._client.query_points(*args, **kwargs).points
        return types.SimpleNamespace(
            points=[
                p.model_copy(update={"vector": None if self.bare else self.spoil_vector(p.vector)})
                for p in points
            ]
        )

    def retrieve(self, *args: Any, **kwargs: Any) -> Any:
        self.reads += 1
        return self.spoil_points(self._client.retrieve(*args, **kwargs))


@pytest.fixture
def client(memory: Any) -> Tampered:
    memory.embedding_retriever.client = Tampered(memory.embedding_retriever.client)
    return memory.embedding_retriever.client


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("k", [10, 20])
def test_retrieve_returns_the_pursuits_picks_in_entry_order(
    memory: Any, preset: str, k: int
) -> None:
    native = memory.retrieve(QUERY, limit=60)
    vectors = memory.text_embedder.vectors
    pool = names(native)
    picks = select(vectors[QUERY], [vectors[n] for n in pool], k, **PRESETS[preset])
    with lightmem.attach(memory, preset=preset):
        lines = memory.retrieve(QUERY, limit=k)
    assert lines == [native[i] for i in picks.indices]
    assert lines != native[:k]


def test_the_exposed_pool_is_what_retrieve_chooses_from(memory: Any) -> None:
    pool = lightmem.pool(memory, QUERY, pool_size=40)
    with lightmem.attach(memory, pool_size=40) as handle:
        memory.retrieve(QUERY, limit=10)
    assert handle.last is not None
    assert handle.last.pool_ids == tuple(pool.ids)
    assert len(pool) == 40
    expected = memory.text_embedder.vectors[QUERY]
    np.testing.assert_allclose(np.asarray(pool.query), expected, rtol=1e-6)


def test_detach_restores_the_very_same_methods(memory: Any) -> None:
    before = memory.retrieve(QUERY, limit=10)
    methods = memory.retrieve, memory.embedding_retriever.search
    attributes = dict(vars(memory)), dict(vars(memory.embedding_retriever))
    handle = lightmem.attach(memory)
    assert memory.retrieve(QUERY, limit=10) != before
    handle.detach()
    assert (memory.retrieve, memory.embedding_retriever.search) == methods
    assert (dict(vars(memory)), dict(vars(memory.embedding_retriever))) == attributes
    assert memory.retrieve(QUERY, limit=10) == before


def test_nothing_is_embedded_or_searched_twice(memory: Any, client: Tampered) -> None:
    memory.retrieve(QUERY, limit=10)
    assert (memory.text_embedder.calls, client.searches, client.reads) == (1, 1, 0)
    with lightmem.attach(memory):
        memory.retrieve(QUERY, limit=10)
        assert (memory.text_embedder.calls, client.searches, client.reads) == (2, 2, 0)
        client.bare = True
        memory.retrieve(QUERY, limit=10)
    assert (memory.text_embedder.calls, client.searches, client.reads) == (3, 3, 1)


def test_vectors_heard_and_vectors_read_give_the_same_picks(memory: Any, client: Tampered) -> None:
    with lightmem.attach(memory):
        heard = memory.retrieve(QUERY, limit=10)
        client.bare = True
        assert memory.retrieve(QUERY, limit=10) == heard
    assert memory.retrieve(QUERY, limit=10) != heard


@pytest.mark.parametrize(
    "filters",
    [{"speaker_name": "Ana"}, {"float_time_stamp": {"gte": 1_683_000_030, "lte": 1_683_000_070}}],
)
def test_filters_bound_the_pool(memory: Any, filters: dict[str, Any]) -> None:
    allowed = set(names(memory.retrieve(QUERY, limit=SIZE, filters=filters)))
    assert 10 < len(allowed) < SIZE
    with lightmem.attach(memory) as handle:
        picked = names(memory.retrieve(QUERY, limit=10, filters=filters))
    assert len(picked) == 10
    assert set(picked) <= allowed
    assert handle.last is not None
    assert len(handle.last.pool_ids) == min(60, len(allowed))


@pytest.mark.parametrize("tag", ["home", "work", ["WORK", "elsewhere"]])
@pytest.mark.parametrize("drop_untagged", [False, True])
def test_tags_are_honoured_and_every_place_is_filled(
    memory: Any, tag: Any, drop_untagged: bool
) -> None:
    options = {"boundmem_tags": tag, "boundmem_drop_untagged": drop_untagged}
    native = memory.retrieve(QUERY, limit=10, **options)
    allowed = memory.retrieve(QUERY, limit=60, **options)
    assert len(native) < 10 <= len(allowed)
    with lightmem.attach(memory) as handle:
        lines = memory.retrieve(QUERY, limit=10, **options)
    assert len(set(lines)) == 10
    assert set(lines) <= set(allowed)
    assert not any("BAM_TAGS" in line for line in lines)
    pool = lightmem.pool(memory, QUERY, **options)
    assert handle.last is not None
    assert handle.last.pool_ids == tuple(pool.ids)
    assert len(pool) == len(allowed)


def test_other_callers_of_the_searcher_keep_their_neighbours(memory: Any) -> None:
    vector = memory.text_embedder.vectors[QUERY].tolist()

    def neighbours() -> list[Any]:
        return [hit["id"] for hit in memory.embedding_retriever.search(vector, limit=10)]

    def embed_while_another_thread_searches(text: str) -> Any:
        with ThreadPoolExecutor(1) as other:
            seen.append(other.submit(neighbours).result())
        return vector

    before = neighbours()
    seen: list[Any] = []
    with lightmem.attach(memory) as handle:
        assert neighbours() == before
        memory.text_embedder.embed = embed_while_another_thread_searches
        memory.retrieve(QUERY, limit=10)
    assert seen == [before]
    assert handle.last is not None
    assert list(handle.last.ids) != before


@pytest.mark.parametrize("kind", ["source"], indirect=True)
def test_updates_and_summaries_keep_their_neighbours(memory: Any) -> None:
    utils = source_module("lightmem.memory.utils")

    def queues() -> dict[Any, Any]:
        memory.construct_update_queue_all_entries(top_k=8, keep_top_n=5, max_workers=2)
        entries = memory.embedding_retriever.get_all()
        # Local Qdrant's scores differ in their last digit from one call to the next.
        return {e["id"]: [c["id"] for c in e["payload"]["update_queue"]] for e in entries}

    def supplementary() -> list[Any]:
        buffer = [e for e in memory.embedding_retriever.get_all() if e["id"] == point_id(1)]
        found = utils.retrieve_supplementary_entries(
            buffer, memory.embedding_retriever, memory.text_embedder, top_k=5, logger=log
        )
        return [e["id"] for e in found]

    log = logging.getLogger("test")
    before = queues(), supplementary()
    assert any(before[0].values())
    with lightmem.attach(memory):
        assert (queues(), supplementary()) == before


def _without_vectors(points: list[Any]) -> list[Any]:
    return []


def _other_dimension(points: list[Any]) -> list[Any]:
    return [types.SimpleNamespace(id=p.id, vector=list(p.vector)[:-1]) for p in points]


def _not_a_number(points: list[Any]) -> list[Any]:
    return [types.SimpleNamespace(id=p.id, vector=[float("nan")] * len(p.vector)) for p in points]


def _raising(points: list[Any]) -> list[Any]:
    raise ConnectionError("store is down")


@pytest.mark.parametrize("fault", [_without_vectors, _other_dimension, _not_a_number, _raising])
def test_unusable_vectors_leave_lightmems_order_and_one_warning(
    memory: Any, client: Tampered, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    native = memory.retrieve(QUERY, limit=10)
    client.bare = True
    client.spoil_points = fault
    with lightmem.attach(memory) as handle, caplog.at_level(logging.WARNING, "mempursuit"):
        answers = [memory.retrieve(QUERY, limit=10) for _ in range(3)]
    assert answers == [native] * 3
    assert len([r for r in caplog.records if r.name.startswith("mempursuit")]) == 1
    assert sum(handle.stats().fallbacks.values()) == 3


@pytest.mark.parametrize("spoilt", [lambda v: v[:-1], lambda v: [float("nan")] * len(v)])
def test_unusable_vectors_in_the_searchs_answer_leave_lightmems_order(
    memory: Any, client: Tampered, spoilt: Any
) -> None:
    native = memory.retrieve(QUERY, limit=10)
    client.spoil_vector = spoilt
    with lightmem.attach(memory) as handle:
        assert memory.retrieve(QUERY, limit=10) == native
    assert sum(handle.stats().fallbacks.values()) == 1


def test_one_memory_without_a_vector_keeps_its_place(memory: Any, client: Tampered) -> None:
    native = memory.retrieve(QUERY, limit=10)
    third = lightmem.pool(memory, QUERY).ids[2]
    client.bare = True
    client.spoil_points = lambda points: [p for p in points if p.id != third]
    with lightmem.attach(memory):
        lines = memory.retrieve(QUERY, limit=10)
    assert lines[2] == native[2]
    assert lines != native


def test_a_failing_wide_search_leaves_lightmems_own(
    memory: Any, client: Tampered, caplog: pytest.LogCaptureFixture
) -> None:
    native = memory.retrieve(QUERY, limit=10)
    client.widest = 10
    with lightmem.attach(memory) as handle, caplog.at_level(logging.WARNING, "mempursuit"):
        assert [memory.retrieve(QUERY, limit=10) for _ in range(2)] == [native] * 2
    assert handle.stats().fallbacks == {"ConnectionError": 2}
    assert len(caplog.records) == 1


def test_a_store_that_is_down_fails_as_it_does_without_us(memory: Any, client: Tampered) -> None:
    client.widest = 0
    with lightmem.attach(memory), pytest.raises(ConnectionError, match="too wide"):
        memory.retrieve(QUERY, limit=10)


def test_an_exchanged_searcher_is_reported(
    memory: Any, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = memory.text_embedder.vectors
    other = open_store(kind, memory.text_embedder, tmp_path / "other")
    fill(other, vectors)
    native = memory.retrieve(QUERY, limit=10)
    with lightmem.attach(memory) as handle, caplog.at_level(logging.WARNING, "mempursuit"):
        ours, memory.embedding_retriever = memory.embedding_retriever, other.embedding_retriever
        assert memory.retrieve(QUERY, limit=10) == native
        memory.embedding_retriever = ours
    assert handle.stats().fallbacks == {"search_not_seen": 1}
    assert len(caplog.records) == 1
    other.embedding_retriever.client.close()


@pytest.mark.parametrize(("pool_size", "limit", "size"), [(5, 10, 10), (200, 10, SIZE)])
def test_pool_and_limit_bounds(memory: Any, pool_size: int, limit: int, size: int) -> None:
    with lightmem.attach(memory, pool_size=pool_size) as handle:
        lines = memory.retrieve(QUERY, limit=limit)
        assert len(set(lines)) == limit
        assert handle.last is not None
        assert len(handle.last.pool_ids) == size
        assert len(set(memory.retrieve(QUERY, limit=SIZE + 10))) == SIZE


def test_a_second_attach_is_refused_and_leaves_the_first(memory: Any) -> None:
    with lightmem.attach(memory):
        attached = memory.retrieve(QUERY, limit=10)
        with pytest.raises(RuntimeError, match=r"already reads through MemPursuit.*detach"):
            lightmem.attach(memory)
        assert memory.retrieve(QUERY, limit=10) == attached


def test_two_memories_are_independent(memory: Any, kind: str, tmp_path: Path) -> None:
    vectors = make_vectors(seed=1)
    other = open_store(kind, CountingEmbedder(vectors), tmp_path / "other")
    fill(other, vectors)
    native = other.retrieve(QUERY, limit=10)
    with lightmem.attach(memory) as first:
        assert other.retrieve(QUERY, limit=10) == native
        with lightmem.attach(other, pool_size=30, preset="auto") as second:
            memory.retrieve(QUERY, limit=10)
            other.retrieve(QUERY, limit=10)
            assert first.last is not None
            assert second.last is not None
            assert (len(first.last.pool_ids), len(second.last.pool_ids)) == (60, 30)
        assert (first.stats().searches, second.stats().searches) == (1, 1)
        assert other.retrieve(QUERY, limit=10) == native
    other.embedding_retriever.client.close()


def test_sixteen_threads_see_their_own_question(memory: Any) -> None:
    vectors = memory.text_embedder.vectors
    questions = [n for n in vectors if n != QUERY][::3][:16]
    with lightmem.attach(memory):
        expected = {q: memory.retrieve(q, limit=10) for q in questions}
        assert len({tuple(lines) for lines in expected.values()}) == len(questions)
        with ThreadPoolExecutor(16) as threads:
            found = list(threads.map(lambda q: memory.retrieve(q, limit=10), questions * 8))
    assert found == [expected[q] for q in questions * 8]


@pytest.fixture
def classes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `import lightmem` find the port; LightMem's source is found as it is."""
    if kind == "source":
        source_module()
        return
    retriever = "lightmem.factory.retriever.embeddingretriever.qdrant"
    for name in ("lightmem.memory.lightmem", retriever):
        parts = name.split(".")
        for i in range(1, len(parts)):
            parent = ".".join(parts[:i])
            monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
        monkeypatch.setitem(sys.modules, name, port)


@pytest.mark.usefixtures("classes")
def test_install_covers_every_memory_until_uninstall(
    memory: Any, kind: str, tmp_path: Path
) -> None:
    native = memory.retrieve(QUERY, limit=10)
    with lightmem.attach(memory):
        attached = memory.retrieve(QUERY, limit=10)
    before = type(memory).retrieve, type(memory.embedding_retriever).search
    handle = lightmem.install()
    try:
        with pytest.raises(RuntimeError, match="already installed"):
            lightmem.install()
        with pytest.raises(RuntimeError, match="already reads through MemPursuit"):
            lightmem.attach(memory)
        assert memory.retrieve(QUERY, limit=10) == attached
        later = open_store(kind, memory.text_embedder, tmp_path / "later")
        fill(later, memory.text_embedder.vectors)
        assert later.retrieve(QUERY, limit=10) == attached
        later.embedding_retriever.client.close()
        assert handle.stats().searches == 2
    finally:
        lightmem.uninstall()
    assert (type(memory).retrieve, type(memory.embedding_retriever).search) == before
    assert memory.retrieve(QUERY, limit=10) == native
