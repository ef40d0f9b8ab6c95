"""Qdrant: a server, or the local mode on disk or in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters.pool import Vector

DENSE = ""  # Mem0 stores the embedding as the unnamed vector, beside a sparse one called "bm25"


def read(store: Any, ids: Sequence[str]) -> Sequence[Vector | None] | NDArray[np.floating[Any]]:
    """Return the vectors of `ids`."""
    points = [_point_id(i) for i in ids]
    with suppress(Exception):
        return _from_local(store, points)
    records = store.client.retrieve(
        collection_name=store.collection_name, ids=points, with_payload=False, with_vectors=True
    )
    found = {str(record.id): _dense(record.vector) for record in records}
    return [found.get(str(point)) for point in points]


def _from_local(store: Any, points: Sequence[Any]) -> NDArray[np.floating[Any]]:
    """Take the rows out of the local mode's own array.

    `retrieve` would turn every float into a Python object first, 5 to 100 times slower.

    Raises:
        Exception: this is no local mode, it is laid out otherwise, or some id is gone.
    """
    collection = store.client._client.collections[store.collection_name]
    rows = [collection.ids[point] for point in points]
    if collection.deleted[rows].any() or collection.deleted_per_vector[DENSE][rows].any():
        raise LookupError("a point was deleted")
    vectors: NDArray[np.floating[Any]] = collection.vectors[DENSE][rows]
    return vectors


def _dense(vector: Any) -> Vector | None:
    found: Vector | None = vector.get(DENSE) if isinstance(vector, dict) else vector
    return found


def _point_id(identifier: str) -> str | int:
    return int(identifier) if identifier.isdecimal() else identifier
