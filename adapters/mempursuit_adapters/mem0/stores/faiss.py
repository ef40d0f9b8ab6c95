"""FAISS: a flat index in this process, with Mem0's own map from position to id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters.pool import Vector


def read(store: Any, ids: Sequence[str]) -> Sequence[Vector | None] | NDArray[np.float32]:
    """Return the vectors of `ids`."""
    wanted = set(ids)
    position = {i: p for p, i in store.index_to_id.copy().items() if i in wanted}
    stored: NDArray[np.float32] = store.index.reconstruct_batch([*position.values()])
    found = dict(zip(position, stored, strict=True))
    if len(found) == len(ids):
        return np.stack([found[i] for i in ids])
    return [found.get(i) for i in ids]
