"""Real Mem0 memories over small stores whose vectors are known."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from mem0 import Memory
from mem0.configs.base import MemoryConfig

from mempursuit_core import select

DIMENSION = 16
USER = {"user_id": "ann"}
QUESTION = "what does ann do at the weekend?"
UNUSED = {"provider": "openai", "config": {"api_key": "unused"}}  # built, never called


def facts(count: int = 120, seed: int = 1) -> dict[str, list[float]]:
    """Return texts with vectors that point roughly the question's way, many nearly the same."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((8, DIMENSION)) + 1.0
    return {
        f"fact {i}": (topics[i % 8] + 0.3 * rng.standard_normal(DIMENSION)).tolist()
        for i in range(count)
    }


class Embedder:
    """Looks vectors up; counts how often it is asked. An unknown text is the question."""

    def __init__(self, vectors: Mapping[str, list[float]]) -> None:
        self.vectors = dict(vectors)
        self.question = np.ones(DIMENSION).tolist()
        self.asked: list[str] = []
        self.batches: list[list[str]] = []
        self._lock = threading.Lock()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        with self._lock:
            self.asked.append(text)
        return self.vectors.get(text, self.question)

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        self.batches.append(list(texts))
        return [self.vectors.get(text, self.question) for text in texts]


def identifier(text: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, text))


def config(folder: Path, **changes: Any) -> dict[str, Any]:
    """Return a configuration with an on-disk Qdrant in `folder`."""
    return {
        "embedder": UNUSED,
        "llm": UNUSED,
        "history_db_path": str(folder / "history.db"),
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": str(folder / "qdrant"),
                "embedding_model_dims": DIMENSION,
                "on_disk": True,
            },
        },
        **changes,
    }


def make(
    folder: Path,
    vectors: Mapping[str, list[float]] | None = None,
    kind: type[Any] = Memory,
    **changes: Any,
) -> Any:
    """Return a filled memory whose embedder looks `vectors` up."""
    memory = kind(MemoryConfig(**config(folder, **changes)))
    vectors = facts() if vectors is None else vectors
    memory.embedding_model = Embedder(vectors)
    write(memory, vectors)
    return memory


def write(
    memory: Any, vectors: Mapping[str, list[float]], user: str = "ann", **payload: Any
) -> None:
    """Store `vectors` under their texts, without any model."""
    texts = list(vectors)
    with suppress(AttributeError):  # a local Qdrant waits for the disk after every point
        local = memory.vector_store.client._client.collections["mem0"]
        local.storage.storage.execute("PRAGMA synchronous=OFF")
    if texts:
        memory.vector_store.insert(
            vectors=[vectors[t] for t in texts],
            payloads=[
                {"data": t, "user_id": user, "text_lemmatized": t, "hash": t, **payload}
                for t in texts
            ],
            ids=[identifier(user + t) for t in texts],
        )


def search(memory: Any, query: str = QUESTION, **arguments: Any) -> list[dict[str, Any]]:
    """Search a Memory or an AsyncMemory and return the rows."""
    found = memory.search(query, **{"filters": USER, "rerank": True, **arguments})
    if asyncio.iscoroutine(found):
        found = asyncio.run(found)
    rows: list[dict[str, Any]] = found["results"]
    return rows


def texts_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["memory"] for row in rows]


def native_order(vectors: Mapping[str, list[float]], query: Sequence[float]) -> list[str]:
    """Return the texts by cosine to `query`, as a dense search orders them."""
    return sorted(vectors, key=lambda t: -cosine(vectors[t], query))


def pursued(
    vectors: Mapping[str, list[float]],
    k: int,
    pool_size: int = 200,
    query: Sequence[float] | None = None,
    **dials: Any,
) -> list[str]:
    """Return what the core picks from the first `pool_size` texts."""
    query = np.ones(DIMENSION).tolist() if query is None else query
    pool = native_order(vectors, query)[:pool_size]
    chosen = select(query, [vectors[t] for t in pool], k, **dials)
    return [pool[i] for i in chosen.indices]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))
