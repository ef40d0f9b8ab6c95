"""How far down the store a widened search looks.

Mem0 asks its store for four times as many rows as it will return, so that keyword and entity
signals can lift memories from further down; making the rows is most of what widening costs. Where
no such signal spoke, the first rows already are the pool. So the store is asked for the pool alone
first, and Mem0's own depth is used only if the answer shows that it mattered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from mempursuit_adapters.mem0.stores import filters_before_cutting

NATIVE = 4  # pools, as far as Mem0 itself looks

_lock = threading.Lock()
_learnt: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # store -> pools its searches needed


class Depth:
    """The depth of one search.

    Args:
        store: Mem0's vector store.
        pool_size: how many results are wanted.
        threshold: similarity below which Mem0 drops a row.
    """

    def __init__(self, store: Any, pool_size: int, threshold: float) -> None:
        self._store = store
        self._pool_size = pool_size
        self._threshold = threshold
        with _lock:
            self._pools = _learnt.get(store, 1)
        self._hits: Sequence[Any] | None = None

    def search(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the store's `search`, for fewer rows than Mem0 asks for if that may do."""
        limit = self._pools * self._pool_size
        asked = kwargs.get("top_k")
        if self._pools >= NATIVE or not isinstance(asked, int) or asked <= limit:
            return call(*args, **kwargs)
        hits = call(*args, **{**kwargs, "top_k": limit})
        self._hits = hits
        return hits

    def sufficed(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Say whether `rows` are what Mem0 would return from its own depth.

        If not, the next `search` goes that deep, and later searches of this store go deeper too.
        """
        hits, self._hits = self._hits, None
        if hits is None:
            return True
        limit = self._pools * self._pool_size
        similarity = {str(hit.id): hit.score for hit in hits}
        # With another signal in play, no row's score is its similarity: Mem0 takes a mean.
        alone = all(row["score"] == min(similarity.get(row["id"], -1.0), 1.0) for row in rows)
        # Expired memories are dropped after the store has cut.
        whole = (
            len(rows) >= self._pool_size
            or (len(hits) < limit and filters_before_cutting(self._store))
            or min(similarity.values(), default=1.0) < self._threshold
        )
        if not (alone and whole):
            with _lock:
                _learnt[self._store] = min(2 * self._pools, NATIVE) if alone else NATIVE
            self._pools = NATIVE
        return alone and whole
