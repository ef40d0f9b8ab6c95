"""Searching for pools outside `Memory.search(rerank=True)`: the evaluator's pool, several stores.

Mem0's paper keeps one store for each speaker and reads both; one pursuit then picks from the
merged candidates.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from mempursuit_adapters.choice import Choice
from mempursuit_adapters.dials import check_count, check_pool_size, resolve_dials
from mempursuit_adapters.mem0.attachment import reader_of
from mempursuit_adapters.mem0.inflight import InFlight
from mempursuit_adapters.mem0.pooling import Row, as_pool, by_cosine, distinct, unattached
from mempursuit_adapters.mem0.reading import picked
from mempursuit_adapters.mem0.settings import POOL_SIZE, Settings
from mempursuit_adapters.pool import Pool
from mempursuit_adapters.reader import Reader
from mempursuit_core import AdaptiveStop, Dials
from mempursuit_core.presets import Discount

PER_STORE = 30  # candidates of each mirrored store, as in the paper
TOP_K = 20  # Mem0's own default

Filter = Mapping[str, Any]


def pool(
    memory: Any, query: str, *, filters: Filter, pool_size: int = POOL_SIZE, **search: Any
) -> Pool:
    """Return the candidates that an attached `memory` picks from.

    Args:
        memory: a `mem0.Memory`, attached or not.
        query: what to search for.
        filters: as in `Memory.search`.
        pool_size: how many candidates.
        search: any other argument of `Memory.search`, such as `threshold` or `show_expired`.

    Returns:
        Up to `pool_size` candidates in Mem0's own (hybrid) order; `items` are its result rows.

    Raises:
        Exception: whatever `Memory.search` raises.
    """
    found = _Stores(memory, query, [filters], check_pool_size(pool_size), search)
    return found.search().pool(unattached)


def pool_across(
    memory: Any,
    query: str,
    *,
    filters: Sequence[Filter],
    per_store: int = PER_STORE,
    **search: Any,
) -> Pool:
    """Return the merged candidates of several stores.

    Each of `filters` names one store, of which the first `per_store` results enter. The union is
    ordered by cosine to the query, best first; a memory that several filters find counts once.
    The query is embedded once.

    Raises:
        ValueError: `filters` is empty, or one filter instead of a list of them.
        Exception: whatever `Memory.search` raises.
    """
    _check_sync(memory)
    found = _Stores(memory, query, _checked(filters), check_count(per_store, "per_store"), search)
    return by_cosine(found.search().pool(unattached))


def search_across(
    memory: Any,
    query: str,
    *,
    filters: Sequence[Filter],
    top_k: int = TOP_K,
    per_store: int = PER_STORE,
    preset: str | None = None,
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    ridge: float | None = None,
    stop: AdaptiveStop | None = None,
    **search: Any,
) -> dict[str, list[Row]]:
    """Search several stores and pick `top_k` memories from their merged candidates.

    The candidates are those of :func:`pool_across`. Preset and dials are as in `attach()`; an
    attached memory's own are used if none is given, else "paper".

    Args:
        memory: a `mem0.Memory`, attached or not. For `mem0.AsyncMemory` see
            :func:`search_across_async`.
        query: what to search for.
        filters: one filter a store, such as `[{"user_id": "ann"}, {"user_id": "bob"}]`.
        top_k: how many memories to return at most.
        per_store: how many candidates each store gives.
        search: any other argument of `Memory.search`, such as `threshold`.

    Returns:
        `{"results": rows}` in entry order, each row with a `rerank_score`.

    Raises:
        ValueError: an argument is out of range.
        Exception: whatever `Memory.search` raises.
    """
    dials = _dials(memory, preset, discount, near_duplicate, ridge, stop)
    check_count(top_k, "top_k")
    _check_sync(memory)
    found = _Stores(memory, query, _checked(filters), check_count(per_store, "per_store"), search)
    return found.search().pick(top_k, dials)


async def search_across_async(
    memory: Any,
    query: str,
    *,
    filters: Sequence[Filter],
    top_k: int = TOP_K,
    per_store: int = PER_STORE,
    preset: str | None = None,
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    ridge: float | None = None,
    stop: AdaptiveStop | None = None,
    **search: Any,
) -> dict[str, list[Row]]:
    """Do what :func:`search_across` does, for a `mem0.AsyncMemory`."""
    dials = _dials(memory, preset, discount, near_duplicate, ridge, stop)
    check_count(top_k, "top_k")
    stores = _Stores(memory, query, _checked(filters), check_count(per_store, "per_store"), search)
    found = await stores.search_async()
    results = await asyncio.to_thread(found.pick, top_k, dials)
    found.remember()
    return results


class _Stores(InFlight):
    """One query to one or more stores of a memory: the union of what they return."""

    def __init__(
        self,
        memory: Any,
        query: str,
        filters: Sequence[Filter],
        top_k: int,
        search: Mapping[str, Any],
    ) -> None:
        super().__init__(memory, query)
        own_order = {**search, "top_k": top_k, "rerank": False}
        self._calls = [{**own_order, "filters": one} for one in filters]
        self._rows: list[Row] = []
        self._reader = reader_of(memory)
        self._choice: Choice | None = None

    def search(self) -> _Stores:
        """Search every store, embedding the query once."""
        with self.running():
            for arguments in self._calls:
                self._take(self.memory.search(self.text, **arguments))
        return self

    async def search_async(self) -> _Stores:
        """Search every store, embedding the query once."""
        with self.running():
            for arguments in self._calls:
                self._take(await self.memory.search(self.text, **arguments))
        return self

    def pool(self, reader: Reader) -> Pool:
        """Return what was found, in the order found."""
        return as_pool(self.memory, self._rows, self.query, reader)

    def pick(self, k: int, dials: Dials) -> dict[str, list[Row]]:
        """Pick from what was found; never raises."""
        # If nothing can be judged, the stores' own scores are all there is.
        native = sorted(self._rows, key=lambda row: -float(row.get("score") or 0.0))
        merged = native

        def fetch() -> Pool:
            nonlocal merged
            pool = by_cosine(self.pool(self._reader))
            merged = list(pool.items)
            return pool

        self._choice = self._reader.read(fetch, k, dials)
        return {"results": picked(self._choice, merged, k)}

    def remember(self) -> None:
        """Make the choice the calling task's own, after `pick` ran in a worker thread."""
        if self._choice is not None:
            self._reader.remember(self._choice)

    def _take(self, found: Any) -> None:
        self._rows = distinct([*self._rows, *found["results"]])
        self.replay = True  # the next store is asked the same text: its vector is known


def _check_sync(memory: Any) -> None:
    if inspect.iscoroutinefunction(memory.search):
        raise TypeError("memory is an AsyncMemory: await search_across_async(…) instead")


def _checked(filters: Any) -> Sequence[Filter]:
    listed = isinstance(filters, Sequence) and all(isinstance(one, Mapping) for one in filters)
    if not listed or not filters:
        raise ValueError(
            "filters must be a list with one filter a store, such as "
            "[{'user_id': 'ann'}, {'user_id': 'bob'}]"
        )
    return list(filters)


def _dials(
    memory: Any,
    preset: str | None,
    discount: Discount | None,
    near_duplicate: float | None,
    ridge: float | None,
    stop: AdaptiveStop | None,
) -> Dials:
    given = (discount, near_duplicate, ridge, stop)
    attached = getattr(getattr(memory, "reranker", None), "settings", None)
    if preset is None and all(dial is None for dial in given) and isinstance(attached, Settings):
        return attached.dials
    return resolve_dials(
        preset or "paper",
        discount=discount,
        near_duplicate=near_duplicate,
        ridge=ridge,
        stop=stop,
    )
