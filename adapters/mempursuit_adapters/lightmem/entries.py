"""The retriever of LightMem's LoCoMo experiment: entries in a list, scored in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mempursuit_adapters.dials import check_pool_size
from mempursuit_adapters.lightmem.memory import is_budget
from mempursuit_adapters.patching import Patches
from mempursuit_adapters.pool import Pool, Vector
from mempursuit_adapters.reader import Reader
from mempursuit_adapters.views import view

Entry = dict[str, Any]  # id, payload, vector


def entries_pool(
    retriever: Any, entries: Sequence[Entry], query_text: str, *, pool_size: int = 60
) -> Pool:
    """Return what `retriever.retrieve(entries, query_text, ...)` chooses from once attached."""
    results, query = _score(retriever, entries, query_text, check_pool_size(pool_size))
    return _pool_of(entries, results, query)


def patch_entry_retriever(patches: Patches, retriever: Any, reader: Reader, pool_size: int) -> None:
    """Patch `retrieve` of one entry retriever; lists of summaries keep their own order."""

    def retrieve(
        call: Callable[..., list[Entry]],
        retriever: Any,
        entries: Sequence[Entry],
        query_text: str,
        limit: int = 20,
    ) -> list[Entry]:
        if not is_budget(limit) or not _memories(entries):
            return call(entries, query_text, limit)
        try:
            results, query = _score(retriever, entries, query_text, max(limit, pool_size))
        except Exception as error:
            reader.failed(error)
            return call(entries, query_text, limit)
        choice = reader.read(lambda: _pool_of(entries, results, query), limit)
        if choice is None:
            return results[:limit]
        return [results[i] for i in choice.positions]

    patches.method(retriever, "retrieve", retrieve)


def _memories(entries: Sequence[Entry]) -> bool:
    """Say whether `entries` are memories; summaries are kept in a list of their own."""
    return any("memory" in (entry.get("payload") or {}) for entry in entries)


def _score(
    retriever: Any, entries: Sequence[Entry], query_text: str, limit: int
) -> tuple[list[Entry], Vector | None]:
    """Return the retriever's own best `limit` and the query vector it computed on the way."""
    embedder = _Remembering(retriever.embedder)
    shown = view(retriever, "embedder", embedder)
    return type(retriever).retrieve(shown, entries, query_text, limit), embedder.vector


class _Remembering:
    """An embedder that keeps the last vector it made."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self.vector: Vector | None = None

    def embed(self, *args: Any, **kwargs: Any) -> Any:
        self.vector = self._embedder.embed(*args, **kwargs)
        return self.vector

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)


def _pool_of(entries: Sequence[Entry], results: Sequence[Entry], query: Vector | None) -> Pool:
    vectors = {str(entry.get("id")): entry.get("vector") for entry in entries}  # as in the results
    ids = [result["id"] for result in results]
    return Pool(
        ids=ids,
        vectors=[vectors.get(i) for i in ids],
        query=query,
        items=results,
        texts=[str((result.get("payload") or {}).get("memory", "")) for result in results],
    )
