"""A toy framework: an in-memory store that users search, and that summarises by searching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = dict[str, Any]  # id, text, score


class ToyIndex:
    """Vectors by id, searched by cosine."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[str, NDArray[np.float32]]] = {}

    def nearest(self, vector: NDArray[np.float32], limit: int) -> list[Row]:
        """Return the `limit` rows of the largest cosine."""
        scored = [
            {"id": i, "text": text, "score": float(_unit(stored) @ _unit(vector))}
            for i, (text, stored) in self.rows.items()
        ]
        return sorted(scored, key=lambda row: -row["score"])[:limit]

    def vectors(self, ids: list[int]) -> list[NDArray[np.float32] | None]:
        """Return the stored vectors of `ids`."""
        return [self.rows[i][1] for i in ids]


class ToyMemory:
    """What a user of the toy framework holds."""

    def __init__(self, embed: Callable[[str], NDArray[np.float32]]) -> None:
        self.embed = embed
        self.index = ToyIndex()

    def add(self, text: str) -> int:
        """Keep `text` and return its id."""
        new = len(self.index.rows) + 100
        self.index.rows[new] = (text, self.embed(text))
        return new

    def delete(self, row_id: int) -> bool:
        """Forget a memory."""
        return self.index.rows.pop(row_id, None) is not None

    def search(self, query: str, limit: int = 10) -> list[Row]:
        """Return the `limit` memories nearest to `query`."""
        return self.index.nearest(self.embed(query), limit)

    def summary(self, topic: str) -> str:
        """Tell the three memories nearest to `topic`; not a search of the user's."""
        return "; ".join(row["text"] for row in self.index.nearest(self.embed(topic), 3))


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return vector / np.linalg.norm(vector)
