"""A reranked search: widen Mem0's own retrieval to the pool, then pick from what came back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mempursuit_adapters.choice import Choice
from mempursuit_adapters.mem0.depth import Depth
from mempursuit_adapters.mem0.inflight import InFlight, current, listening
from mempursuit_adapters.mem0.pooling import as_pool, distinct
from mempursuit_adapters.mem0.settings import Settings
from mempursuit_adapters.reader import Reader

Row = dict[str, Any]  # one search result of Mem0
Arguments = tuple[tuple[Any, ...], dict[str, Any]]

WIDE_SEARCH = "wide_search_failed"


@dataclass(eq=False)
class PursuitRead(InFlight):
    """A search in flight whose results the pursuit picks.

    Attributes:
        settings: pool size and dials.
        reader: where the choice is counted and remembered.
        top_k: how many results the user asked for, if that is known.
        narrow: the wide retrieval failed; these rows keep Mem0's own order.
        choice: what was picked.
        depth: how far down the store it looks; None while nothing is widened.
    """

    settings: Settings = field(kw_only=True)
    reader: Reader = field(kw_only=True)
    top_k: int | None = None
    narrow: bool = False
    choice: Choice | None = None
    depth: Depth | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Also ask the store no deeper than the pool needs."""
        store = getattr(self.memory, "vector_store", None)
        with super().running(), listening(store, "search", _search_store):
            yield

    def widened(
        self, call: Callable[..., Any], args: Sequence[Any], kwargs: Row
    ) -> Arguments | None:
        """Return the arguments of Mem0's retrieval with its limit raised to the pool size.

        None if there is nothing to raise: the limit is no positive number (Mem0 has its own word
        on that), is large enough, or goes by another name.
        """
        with suppress(Exception):
            bound = inspect.signature(call).bind(*args, **kwargs)
            bound.apply_defaults()
            limit = bound.arguments.get("limit")
            size = self.settings.pool_size
            if isinstance(limit, int) and 0 < limit < size:
                bound.arguments["limit"] = size
                with suppress(Exception):
                    threshold = float(bound.arguments["threshold"])
                    self.depth = Depth(self.memory.vector_store, size, threshold)
                return bound.args, bound.kwargs
        return None

    def too_shallow(self, rows: Any) -> bool:
        """Say whether the widened retrieval must be repeated at Mem0's own depth."""
        if self.depth is None or self.depth.sufficed(rows):
            return False
        self.replay = True
        return True

    def narrow_down(self) -> bool:
        """After a wide retrieval that failed, say whether Mem0's own is worth a try.

        It is not if the failure came before Mem0 had embedded the query: width did not cause it.
        """
        self.depth = None
        self.replay = self.narrow = self.query is not None
        return self.narrow

    def narrowed(self, error: Exception) -> None:
        """Count a wide retrieval that failed where Mem0's own succeeded."""
        self.reader.fell_back(
            WIDE_SEARCH,
            f"asking the store for {self.settings.pool_size} candidates raised "
            f"{type(error).__name__}: {error}; a smaller pool_size may be within its limit",
        )

    def choose(self, rows: Sequence[Row], k: int) -> list[Row]:
        """Return up to `k` of the retrieved `rows` in entry order, each with `rerank_score`."""
        pool_rows = distinct(rows)[: max(self.settings.pool_size, k)]
        if self.narrow:
            return keep_order(pool_rows, k)
        self.choice = self.reader.read(
            lambda: as_pool(self.memory, pool_rows, self.query, self.reader), k, self.settings.dials
        )
        return picked(self.choice, pool_rows, k)

    def finish(self, found: Any) -> Any:
        """Return what the user gets; never more than `top_k` rows, whatever happened on the way."""
        if self.choice is not None:
            self.reader.remember(self.choice)
        with suppress(Exception):
            rows = found["results"]
            if self.top_k is not None and len(rows) > self.top_k:
                return {**found, "results": rows[: self.top_k]}
        return found


def _search_store(call: Callable[..., Any], store: Any, *args: Any, **kwargs: Any) -> Any:
    read = current()
    if isinstance(read, PursuitRead) and read.depth and read.memory.vector_store is store:
        return read.depth.search(call, *args, **kwargs)
    return call(*args, **kwargs)


def picked(choice: Choice | None, rows: Sequence[Row], k: int) -> list[Row]:
    """Return the chosen rows, or Mem0's own first `k` if nothing was chosen."""
    if choice is None:
        return keep_order(rows, k)
    chosen = zip(choice.positions, choice.scores, strict=True)
    return [_scored(rows[i], score) for i, score in chosen]


def keep_order(rows: Sequence[Row], k: int) -> list[Row]:
    """Return Mem0's own first `k` rows, scored 0 as its rerankers do when they cannot judge."""
    return [_scored(row, None) for row in distinct(rows)[:k]]


def _scored(row: Row, score: float | None) -> Row:
    return {**row, "rerank_score": 0.0 if score is None else score}
