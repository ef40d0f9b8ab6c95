"""The FAISS index of a store: the pool it offers, and its search answered with the picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters.choice import Choice
from mempursuit_adapters.pool import Pool

_NONE = -1  # FAISS's label for "not enough vectors"
_WORST = float(np.finfo(np.float32).max)  # and the distance it gives beside it

# keep(label, score): whether the framework itself could hand this memory back
Keep = Callable[[int, float], bool]
# read(fetch, k): `Reader.read`
Read = Callable[[Callable[[], Pool], int], "Choice | None"]


def seed_pool(store: Any, query: NDArray[np.float32], size: int, keep: Keep | None = None) -> Pool:
    """Return the top `size` of the store's index for `query`, shape (d,), nearest first.

    Ids are FAISS labels (positions in the index), items the index's own scores. One FAISS call
    gives scores, labels and vectors, also for an IVF index, which cannot `reconstruct` by label.

    Raises:
        RuntimeError: the index cannot give its vectors back (IndexIDMap over anything).
    """
    index = store.index
    width = max(1, min(size, index.ntotal))
    row = np.ascontiguousarray(query, dtype=np.float32).reshape(1, -1)
    scores, labels, vectors = (answer[0] for answer in index.search_and_reconstruct(row, width))
    kept = [
        j
        for j, label in enumerate(labels.tolist())
        if label != _NONE and (keep is None or keep(label, float(scores[j])))
    ]
    if len(kept) < len(labels):  # otherwise spare the copies
        scores, labels, vectors = scores[kept], labels[kept], vectors[kept]
    ids: list[int] = labels.tolist()
    return Pool(ids, vectors, row[0], scores.tolist(), _texts(store, ids))


class SeedIndex:
    """A store's FAISS index as one search sees it: `search` answers with the picked seeds."""

    def __init__(
        self, store: Any, read: Read, budget: int, pool_size: int, keep: Keep | None
    ) -> None:
        self._store = store
        self._index = store.index
        self._read = read
        self._budget = budget
        self._pool_size = pool_size
        self._keep = keep

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def search(self, x: Any, k: int, *args: Any, **kwargs: Any) -> Any:
        """Return (scores, labels) of the picks for each row of `x`, padded to `k` as FAISS does.

        `x` has shape (n, d), the answers (n, k); where MemPursuit cannot choose, or the caller
        hands FAISS options of its own, the answer is the index's.
        """
        picks = [] if args or kwargs else [self._pick(row, k) for row in np.atleast_2d(x)]
        sound = [pick for pick in picks if pick is not None]
        if not picks or len(sound) < len(picks):
            return self._index.search(x, k, *args, **kwargs)
        # Inner products count down from the best, distances up: 0 is FAISS's METRIC_INNER_PRODUCT.
        worst = -_WORST if getattr(self._index, "metric_type", 1) == 0 else _WORST
        width = max(k, *(len(labels) for _, labels in sound))
        scores = np.full((len(sound), width), worst, dtype=np.float32)
        labels = np.full((len(sound), width), _NONE, dtype=np.int64)
        for i, (row_scores, row_labels) in enumerate(sound):
            scores[i, : len(row_scores)] = row_scores
            labels[i, : len(row_labels)] = row_labels
        return scores, labels

    def _pick(
        self, query: NDArray[np.float32], k: int
    ) -> tuple[Sequence[float], Sequence[int]] | None:
        """Return the scores and labels of the picks for one query, or None."""
        fetched: list[Pool] = []

        def fetch() -> Pool:
            fetched.append(seed_pool(self._store, query, max(self._pool_size, k), self._keep))
            return fetched[0]

        choice = self._read(fetch, self._budget)
        if choice is None:
            return None
        pool = fetched[0]
        return [pool.items[i] for i in choice.positions], [pool.ids[i] for i in choice.positions]  # type: ignore[misc]


def document_of(store: Any, label: int) -> Any:
    """Return the document stored under a FAISS label."""
    return store.docstore.search(store.index_to_docstore_id[label])


def _texts(store: Any, ids: Sequence[int]) -> list[str]:
    """Return what the memories say, for `explain()`; empty unless they are at hand in memory."""
    documents = getattr(getattr(store, "docstore", None), "_dict", None)
    if not isinstance(documents, dict):
        return []
    try:
        names = store.index_to_docstore_id
        return [documents[names[label]].page_content for label in ids]
    except (KeyError, AttributeError):  # an index and docstore that disagree
        return []
