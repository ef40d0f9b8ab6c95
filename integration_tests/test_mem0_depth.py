"""Asking the store for less than Mem0 does never changes the pool."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mem0 import AsyncMemory, Memory

from integration_tests.mem0_kit import (
    DIMENSION,
    QUESTION,
    facts,
    identifier,
    make,
    native_order,
    search,
    write,
)
from mempursuit_adapters import mem0 as adapter

FACTS = facts(400)
POOL = 50
KINDS = pytest.mark.parametrize("kind", [Memory, AsyncMemory])


class Words:
    """A keyword encoder as Qdrant's BM25 one: a hash for each word."""

    def embed(self, texts: Sequence[str]) -> list[Any]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Any:
        words = np.array(sorted({zlib.crc32(w.encode()) for w in text.split()}))
        return SimpleNamespace(indices=words, values=np.ones(len(words)))


def asked_of(memory: Any) -> list[int]:
    """Return a list of how many rows the store is asked for from now on."""
    asked: list[int] = []
    honest = memory.vector_store.search

    def watching(**arguments: Any) -> Any:
        asked.append(arguments["top_k"])
        return honest(**arguments)

    memory.vector_store.search = watching
    return asked


def full_depth(memory: Any, query: str = QUESTION, **arguments: Any) -> list[str]:
    """Return the ids of the pool as Mem0 itself searches for it."""
    arguments = {"rerank": False, "top_k": POOL, **arguments}
    return [row["id"] for row in search(memory, query, **arguments)]


@KINDS
def test_a_dense_search_asks_for_the_pool_alone(kind: type[Any], tmp_path: Path) -> None:
    memory = make(tmp_path, FACTS, kind)
    expected = full_depth(memory)
    asked = asked_of(memory)
    with adapter.attach(memory, pool_size=POOL) as handle:
        for _ in range(2):
            search(memory, top_k=10)
            assert handle.last is not None
            assert list(handle.last.pool_ids) == expected
    assert asked == [POOL, POOL]


@KINDS
def test_keywords_that_lift_memories_are_given_mem0s_own_depth(
    kind: type[Any], tmp_path: Path
) -> None:
    memory = make(tmp_path, {}, kind)
    memory.vector_store._bm25_encoder = Words()
    write(memory, FACTS)
    beyond_the_pool = native_order(FACTS, [1.0] * DIMENSION)[POOL + 10 : 4 * POOL : 50]
    questions = [f"{text.split()[1]} ?" for text in beyond_the_pool]
    expected = [full_depth(memory, q) for q in questions]
    for text, pool in zip(beyond_the_pool, expected, strict=True):
        assert identifier(f"ann{text}") in pool
    asked = asked_of(memory)
    with adapter.attach(memory, pool_size=POOL) as handle:
        for question, pool in zip(questions, expected, strict=True):
            search(memory, question, top_k=10)
            assert handle.last is not None
            assert list(handle.last.pool_ids) == pool
    assert asked == [POOL, *[4 * POOL] * len(questions)]  # it is learnt from the first
    assert memory.embedding_model.asked[-len(questions) :] == questions  # and never embedded twice


def test_keyword_search_without_a_match_stays_shallow(tmp_path: Path) -> None:
    memory = make(tmp_path, {})
    memory.vector_store._bm25_encoder = Words()
    write(memory, FACTS)
    expected = full_depth(memory, "nothing in common")
    asked = asked_of(memory)
    with adapter.attach(memory, pool_size=POOL) as handle:
        search(memory, "nothing in common", top_k=10)
    assert handle.last is not None
    assert list(handle.last.pool_ids) == expected
    assert asked == [POOL]


@pytest.mark.skipif(
    "show_expired" not in inspect.signature(Memory.search).parameters,
    reason="memories do not expire in this Mem0",
)
def test_expired_memories_make_it_look_deeper(tmp_path: Path) -> None:
    memory = make(tmp_path, {})
    memory.embedding_model.vectors.update(FACTS)
    for n, (text, vector) in enumerate(FACTS.items()):
        expired = {"expiration_date": "2001-01-01"} if n % 3 else {}
        write(memory, {text: vector}, **expired)
    expected = full_depth(memory)
    assert len(expected) == POOL
    asked = asked_of(memory)
    with adapter.attach(memory, pool_size=POOL) as handle:
        for _ in range(3):
            search(memory, top_k=10)
            assert handle.last is not None
            assert list(handle.last.pool_ids) == expected
    assert asked == [POOL, 4 * POOL, 2 * POOL, 4 * POOL, 4 * POOL]


@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.99])
def test_a_store_with_no_more_rows_above_the_threshold_is_not_asked_again(
    threshold: float, tmp_path: Path
) -> None:
    memory = make(tmp_path, dict(list(FACTS.items())[: POOL + 10]))
    expected = full_depth(memory, threshold=threshold)
    asked = asked_of(memory)
    with adapter.attach(memory, pool_size=POOL) as handle:
        search(memory, top_k=10, threshold=threshold)
        if expected:
            assert handle.last is not None
            assert list(handle.last.pool_ids) == expected
        search(memory, top_k=10, filters={"user_id": "nobody"})
    assert asked == [POOL, POOL]


def test_a_store_that_filters_after_cutting_is_looked_through_as_mem0_does(
    tmp_path: Path,
) -> None:
    """Mem0's FAISS drops other users' memories from what it found; few rows then prove nothing."""
    block = {
        "provider": "faiss",
        "config": {
            "path": str(tmp_path / "faiss" / "memories"),
            "distance_strategy": "cosine",
            "embedding_model_dims": DIMENSION,
        },
    }
    memory = make(tmp_path, FACTS, vector_store=block)
    closer = {t: (np.array(v) + 1).tolist() for t, v in facts(300, seed=3).items()}
    write(memory, closer, user="bob")
    asked = asked_of(memory)
    for user in ("bob", "ann", "ann"):
        expected = full_depth(memory, filters={"user_id": user})
        asked.clear()
        with adapter.attach(memory, pool_size=POOL) as handle:
            search(memory, filters={"user_id": user}, top_k=10)
        # Early releases look so little further that they find none of Ann's.
        pool = [] if handle.last is None else list(handle.last.pool_ids)
        assert pool == expected
        if user == "bob":
            assert asked == [POOL]
    assert asked[-1] == 4 * POOL
