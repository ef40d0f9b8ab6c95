"""`LightMemory.retrieve`: its own code runs, and the search inside it returns the picks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from mempursuit_adapters.dials import check_pool_size
from mempursuit_adapters.lightmem.vectors import Heard, hearing, stored_vectors
from mempursuit_adapters.patching import Patches
from mempursuit_adapters.pool import Pool, Vector
from mempursuit_adapters.reader import Reader

Hit = dict[str, Any]  # LightMem's search result: id, score, payload


def pool(
    light_memory: Any,
    query: str,
    *,
    pool_size: int = 60,
    filters: dict[str, Any] | None = None,
    boundmem_tags: Any = None,
    boundmem_drop_untagged: bool = False,
) -> Pool:
    """Return what `light_memory.retrieve(query, ...)` chooses from once attached.

    The `pool_size` memories of the largest cosine under `filters`, less those that
    `boundmem_tags` exclude; `items` are LightMem's search results.
    """
    searcher = light_memory.embedding_retriever
    query_vector = light_memory.text_embedder.embed(query)
    search, heard = hearing(searcher.search, searcher)
    hits = search(
        query_vector=query_vector,
        limit=check_pool_size(pool_size),
        filters=filters,
        return_full=True,
    )
    hits = _allowed(light_memory, hits, boundmem_tags, boundmem_drop_untagged)
    return _pool_of(searcher, query_vector, hits, heard)


def check_memory(target: Any) -> None:
    """Raise unless `target` is a LightMemory that reads an embedding store."""
    if not callable(getattr(target, "retrieve", None)):
        raise TypeError(
            "target must be a LightMemory, or an entry retriever with `embedder` and "
            f"`retrieve(entries, query_text, limit)`; got {type(target).__name__}"
        )
    searcher = getattr(target, "embedding_retriever", None)
    if searcher is None:
        strategy = getattr(target, "retrieve_strategy", None)
        raise ValueError(
            f"target has no embedding_retriever (its retrieve_strategy is {strategy!r}), so it "
            "keeps no vectors to choose by, and LightMem's own retrieve() cannot run either; "
            "build it with retrieve_strategy='embedding' or 'hybrid'"
        )
    missing = [n for n in ("search", "client", "collection_name") if not hasattr(searcher, n)]
    if missing:
        raise TypeError(
            f"target.embedding_retriever must be LightMem's Qdrant searcher; "
            f"{type(searcher).__name__} has no {' and no '.join(missing)}"
        )


def is_budget(limit: object) -> bool:
    """Say whether pursuit can fill `limit` places; any other limit is LightMem's own business."""
    return isinstance(limit, Integral) and int(limit) >= 1


def patch_memory(
    patches: Patches, memory: Any, searcher: Any, reader: Reader, pool_size: int
) -> None:
    """Patch `retrieve` of `memory` and `search` of `searcher`: two objects, or their classes.

    `search` stays as it is for every caller but the `retrieve` under way in the same thread or
    task; that is how updates and summaries keep their own results.
    """

    def retrieve(call: Callable[..., Any], memory: Any, *args: Any, **kwargs: Any) -> Any:
        read = _Read(
            memory,
            getattr(memory, "embedding_retriever", None),  # without one it fails in its own words
            reader,
            pool_size,
            kwargs.get("boundmem_tags"),
            kwargs.get("boundmem_drop_untagged", False),
        )
        token = _current.set(read)
        try:
            answer = call(*args, **kwargs)
        finally:
            _current.reset(token)
        if not read.searched:
            reader.fell_back(
                "search_not_seen",
                f"the searcher that {type(memory).__name__}.retrieve asked is not the one attached",
            )
        return answer

    def search(call: Callable[..., Any], searcher: Any, *args: Any, **kwargs: Any) -> Any:
        read = _current.get()
        if read is None or read.searcher is not searcher:
            return call(*args, **kwargs)
        read.searched = True
        return read.search(call, *args, **kwargs)

    patches.method(memory, "retrieve", retrieve)
    patches.method(searcher, "search", search)


@dataclass
class _Read:
    """One `retrieve` under way."""

    memory: Any
    searcher: Any
    reader: Reader
    pool_size: int
    tags: Any
    drop_untagged: bool
    searched: bool = False

    def search(
        self,
        call: Callable[..., list[Hit]],
        query_vector: Vector,
        limit: int = 5,
        *args: Any,
        **kwargs: Any,
    ) -> list[Hit]:
        """Search as wide as the pool and return the picks; on trouble what LightMem would."""
        if not is_budget(limit):
            return call(query_vector, limit, *args, **kwargs)
        wide, heard = hearing(call, self.searcher)
        try:
            hits = wide(query_vector, max(limit, self.pool_size), *args, **kwargs)
            # LightMem drops excluded tags after the search and then returns fewer than `limit`;
            # dropping them before the choice leaves every place for one that is allowed.
            allowed = _allowed(self.memory, hits, self.tags, self.drop_untagged)
        except Exception as error:
            self.reader.failed(error)
            return call(query_vector, limit, *args, **kwargs)
        choice = self.reader.read(
            lambda: _pool_of(self.searcher, query_vector, allowed, heard), limit
        )
        if choice is None:
            return hits[:limit]
        return [allowed[i] for i in choice.positions]


_current: ContextVar[_Read | None] = ContextVar("mempursuit_lightmem_read", default=None)


def _pool_of(searcher: Any, query_vector: Vector, hits: Sequence[Hit], heard: Heard) -> Pool:
    ids = [hit["id"] for hit in hits]
    return Pool(
        ids=ids,
        vectors=stored_vectors(searcher, ids, heard),
        query=query_vector,
        items=hits,
        texts=[str((hit.get("payload") or {}).get("memory", "")) for hit in hits],
    )


def _allowed(memory: Any, hits: list[Hit], tags: Any, drop_untagged: bool) -> list[Hit]:
    """Return the hits, untouched, that LightMem's own tag rule lets through."""
    if tags is None:
        return hits
    _, report = _tag_rule(memory)(
        results=hits, environment_tags=tags, drop_untagged_on_tag_filter=drop_untagged
    )
    return [hits[i] for i in report["tag_kept_indices"]]


def _tag_rule(memory: Any) -> Callable[..., tuple[list[Hit], dict[str, Any]]]:
    """Return the `filter_by_tags` that `memory.retrieve` calls."""
    for cls in type(memory).__mro__:
        rule = getattr(sys.modules.get(cls.__module__), "filter_by_tags", None)
        if rule is not None:
            return rule  # type: ignore[no-any-return]
    raise LookupError(f"no filter_by_tags beside {type(memory).__name__}")
