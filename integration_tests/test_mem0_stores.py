"""Stored vectors come back from every store, in one round trip and without embedding again."""

from __future__ import annotations

import logging
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mem0.vector_stores.base import VectorStoreBase

from integration_tests.mem0_kit import (
    DIMENSION,
    QUESTION,
    USER,
    facts,
    identifier,
    make,
    pursued,
    search,
    texts_of,
)
from integration_tests.mem0_stores import STORES, qdrant_server, vector_store
from mempursuit_adapters import mem0 as adapter
from mempursuit_adapters.mem0.stores import store_reader

# Of unit length, so that a store that ranks by Euclidean distance ranks by cosine.
UNIT = {
    text: (np.array(v) / np.linalg.norm(v)).astype(np.float32).tolist()
    for text, v in facts(120).items()
}


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the local Qdrant has no payload indexes, and says so
        with vector_store(request.param, tmp_path, DIMENSION) as block:
            memory = make(tmp_path, UNIT, vector_store=block)
            memory.embedding_model.question = [DIMENSION**-0.5] * DIMENSION
            yield memory


def test_the_pursuit_picks_from_the_stores_own_vectors(memory: Any) -> None:
    with adapter.attach(memory, pool_size=60) as handle:
        rows = search(memory, top_k=10)
    assert texts_of(rows) == pursued(UNIT, 10, 60)
    assert memory.embedding_model.asked == [QUESTION]
    assert memory.embedding_model.batches == []
    assert handle.stats().fallbacks == {}


def test_a_reader_returns_each_ids_vector_and_none_for_an_unknown_id(memory: Any) -> None:
    read = store_reader(memory.vector_store)
    assert read is not None
    texts = list(UNIT)[::-7]
    ids = [identifier(f"ann{t}") for t in texts]
    whole = read(memory.vector_store, ids)
    with_gap = read(memory.vector_store, [*ids[:3], str(uuid.uuid4()), *ids[3:]])
    expected = [UNIT[t] for t in texts]
    np.testing.assert_allclose(np.array(whole), expected, atol=1e-6)
    assert with_gap[3] is None
    rest = [v for i, v in enumerate(with_gap) if i != 3]
    np.testing.assert_allclose(np.array(rest), expected, atol=1e-6)


def test_a_deleted_memory_is_gone_and_an_updated_one_is_new(memory: Any) -> None:
    read = store_reader(memory.vector_store)
    assert read is not None
    gone, changed = identifier("annfact 3"), identifier("annfact 4")
    memory.vector_store.delete(gone)
    memory.vector_store.update(
        changed, vector=UNIT["fact 5"], payload={"data": "fact 5", "user_id": "ann"}
    )
    got = read(memory.vector_store, [gone, changed])
    assert got[0] is None
    np.testing.assert_allclose(np.array(got[1], dtype=float), UNIT["fact 5"], atol=1e-6)


def test_a_remote_qdrant_is_asked_for_vectors_once(tmp_path: Path) -> None:
    from qdrant_client import QdrantClient

    with qdrant_server() as server:
        client = QdrantClient(url=server.url, check_compatibility=False)
        block = {
            "provider": "qdrant",
            "config": {"client": client, "embedding_model_dims": DIMENSION},
        }
        memory = make(tmp_path, UNIT, vector_store=block)
        with adapter.attach(memory):
            server.requests.clear()
            search(memory)
        assert server.requests == [
            "POST /collections/mem0/points/query",
            "POST /collections/mem0/points",
        ]


class Elsewhere(VectorStoreBase):  # type: ignore[misc]
    """A store nobody has written a reader for."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def search(self, *args: Any, **kwargs: Any) -> Any:
        return self._store.search(*args, **kwargs)


for _name in VectorStoreBase.__abstractmethods__ - {"search"}:
    setattr(Elsewhere, _name, None)
Elsewhere.__abstractmethods__ = frozenset()


def test_another_store_costs_one_batch_of_embeddings_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = make(tmp_path, UNIT)
    memory.vector_store = Elsewhere(memory.vector_store)
    with adapter.attach(memory, pool_size=60) as handle, caplog.at_level(logging.WARNING):
        rows = search(memory, top_k=10)
        search(memory, top_k=10)
    assert texts_of(rows) == pursued(UNIT, 10, 60)
    assert memory.embedding_model.asked == [QUESTION] * 2
    assert [len(batch) for batch in memory.embedding_model.batches] == [60, 60]
    said = [r.getMessage() for r in caplog.records if r.name == "mempursuit.mem0"]
    assert len(said) == 1
    assert "Elsewhere" in said[0]
    assert "60 texts" in said[0]
    assert handle.stats().fallbacks == {"candidates_embedded": 2}


def test_a_store_derived_from_mem0s_is_read_like_it(tmp_path: Path) -> None:
    memory = make(tmp_path, UNIT)
    memory.vector_store.__class__ = type("Ours", (type(memory.vector_store),), {})
    with adapter.attach(memory):
        assert texts_of(search(memory, filters=USER, top_k=10)) == pursued(UNIT, 10)
    assert memory.embedding_model.batches == []
