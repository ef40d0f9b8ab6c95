"""The pool: Mem0's own search results with the vectors its store holds for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mempursuit_adapters.mem0.stores import Vectors, store_reader
from mempursuit_adapters.pool import Pool, Vector
from mempursuit_adapters.reader import Reader
from mempursuit_adapters.triage import read_vector
from mempursuit_core import Dials

EMBEDDED = "candidates_embedded"

Row = dict[str, Any]  # one search result of Mem0

# Counts and warns for pools that are read outside any attachment.
unattached = Reader("mem0", Dials())


def as_pool(memory: Any, rows: Sequence[Row], query: Vector | None, reader: Reader) -> Pool:
    """Return the result rows of one search as a pool, vectors read from the store in one call."""
    return Pool(
        ids=[row["id"] for row in rows],
        vectors=_vectors(memory, rows, reader),
        query=query,
        items=rows,
        texts=[row.get("memory") or "" for row in rows],
    )


def by_cosine(pool: Pool) -> Pool:
    """Return `pool` ordered by cosine to the query; Mem0's score stands in where it is unknown."""
    query, _ = read_vector(pool.query)
    cosines = [_cosine(query, pool.vectors[i], row) for i, row in enumerate(pool.items)]
    order = sorted(range(len(pool)), key=lambda i: -cosines[i])
    return Pool(
        ids=[pool.ids[i] for i in order],
        vectors=(
            pool.vectors[order]
            if isinstance(pool.vectors, np.ndarray)
            else [pool.vectors[i] for i in order]
        ),
        query=pool.query,
        items=[pool.items[i] for i in order],
        texts=[pool.texts[i] for i in order],
    )


def distinct(rows: Sequence[Row]) -> list[Row]:
    """Return `rows` without those whose id came before."""
    seen: dict[Any, Row] = {}
    for row in rows:
        seen.setdefault(row["id"], row)
    return list(seen.values())


def _vectors(memory: Any, rows: Sequence[Row], reader: Reader) -> Vectors:
    store = memory.vector_store
    read = store_reader(store)
    if read is not None:
        return read(store, [row["id"] for row in rows])
    kind = type(store)
    reader.warn(
        EMBEDDED,
        f"no stored vectors can be read from {kind.__module__}.{kind.__name__}, so every reranked "
        "search embeds the texts of its candidates with Mem0's embedder, in one batch (here "
        f"{len(rows)} texts); a smaller pool_size costs less",
    )
    return _embedded(memory.embedding_model, [row.get("memory") or "" for row in rows])


def _embedded(embedder: Any, texts: Sequence[str]) -> Vectors:
    filled = [i for i, text in enumerate(texts) if text.strip()]
    vectors: list[Vector | None] = [None] * len(texts)
    embedded = embedder.embed_batch([texts[i] for i in filled], "add")
    for i, vector in zip(filled, embedded, strict=True):
        vectors[i] = vector
    return vectors


def _cosine(query: Any, vector: Vector | None, row: Row) -> float:
    found, _ = read_vector(vector)
    if query is None or found is None or found.shape != query.shape:
        return float(row.get("score") or 0.0)
    return float(query @ found / (np.linalg.norm(query) * np.linalg.norm(found)))
