"""FAISS: a flat index in this process, with Mem0's own map from position to id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mempursuit_adapters.pool import Vector


def read(store: Any, ids: Sequence[str]) -> Sequence[Vector | None]:
    """Return the vectors of `ids`."""
    wanted = set(ids)
    position = {i: p for p, i in store.index_to_id.copy().items() if i in wanted}
    return [
        store.index.reconstruct(position[i]) if i in position else None  # (d,) float32
        for i in ids
    ]
