"""Reading stored vectors back, one short function a store.

A reader takes Mem0's store object and P ids, and returns the P vectors in that order: one (P, d)
array if it has them all, else a list with None where the store has none. It asks the store once.
A new store is one function here and one line in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters.mem0.stores import chroma, faiss, pgvector, qdrant
from mempursuit_adapters.pool import Vector

Vectors = Sequence[Vector | None] | NDArray[np.floating[Any]]
StoreReader = Callable[[Any, Sequence[str]], Vectors]

# Module of Mem0's store class -> its reader. Going by name imports no store's client library.
_READERS: dict[str, StoreReader] = {
    "mem0.vector_stores.qdrant": qdrant.read,
    "mem0.vector_stores.chroma": chroma.read,
    "mem0.vector_stores.faiss": faiss.read,
    "mem0.vector_stores.pgvector": pgvector.read,
}


def store_reader(store: Any) -> StoreReader | None:
    """Return the reader for `store`, or for the class it derives from, or None."""
    modules = (kind.__module__ for kind in type(store).__mro__)
    return next((_READERS[module] for module in modules if module in _READERS), None)


def filters_before_cutting(store: Any) -> bool:
    """Say whether fewer rows than asked for mean that `store` has no more that match.

    Mem0's FAISS and PostgreSQL's HNSW indexes cut first and filter then.
    """
    return store_reader(store) is qdrant.read
