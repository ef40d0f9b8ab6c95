"""Right on today's Mem0, and on the two shapes its fix for issue 6448 may take.

Today `search` cuts to `top_k` before the reranker is asked. One proposed fix asks
`_search_vector_store` for more; the other lets it keep all it fetched. Here Mem0's own source is
changed in these two ways.
"""

from __future__ import annotations

import asyncio
import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mem0.memory.main
import pytest
from mem0 import AsyncMemory, Memory

from integration_tests.mem0_kit import USER, facts, make, pursued, search, texts_of
from mempursuit_adapters import mem0 as adapter

FACTS = facts()


def changed(method: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """Return `method` compiled from its source with `old`, which must occur once, replaced."""
    source = textwrap.dedent(inspect.getsource(method))
    assert source.count(old) == 1, f"Mem0's source has changed: {old!r}"
    space = dict(vars(mem0.memory.main))
    exec(compile(source.replace(old, new), "<mem0, fixed>", "exec"), space)
    return space[method.__name__]  # type: ignore[no-any-return]


def search_asks_for_more(kind: type[Any]) -> type[Any]:
    search = changed(
        kind.search,
        "query, effective_filters, limit, threshold",
        "query, effective_filters, max(limit * 4, 60) if rerank else limit, threshold",
    )
    return type(kind.__name__, (kind,), {"search": search})


def retrieval_keeps_what_it_fetched(kind: type[Any]) -> type[Any]:
    retrieve = changed(kind._search_vector_store, "top_k=limit,", "top_k=internal_limit,")
    return type(kind.__name__, (kind,), {"_search_vector_store": retrieve})


def as_it_is(kind: type[Any]) -> type[Any]:
    return kind


FIXES = pytest.mark.parametrize(
    "fixed", [as_it_is, search_asks_for_more, retrieval_keeps_what_it_fetched]
)
KINDS = pytest.mark.parametrize("kind", [Memory, AsyncMemory])


@FIXES
@KINDS
@pytest.mark.parametrize("pool_size", [60, 100])
def test_the_pool_has_the_size_that_was_asked_for(
    fixed: Callable[[type[Any]], type[Any]], kind: type[Any], pool_size: int, tmp_path: Path
) -> None:
    memory = make(tmp_path, FACTS, fixed(kind))
    with adapter.attach(memory, pool_size=pool_size) as handle:
        rows = search(memory, top_k=10)
    assert texts_of(rows) == pursued(FACTS, 10, pool_size)
    assert handle.last is not None
    assert len(handle.last.pool_ids) == pool_size


@FIXES
def test_a_trouble_never_leaves_the_pool_in_the_results(
    fixed: Callable[[type[Any]], type[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make(tmp_path, FACTS, fixed(Memory))
    plain = texts_of(search(memory, rerank=False, top_k=10))[:10]
    with adapter.attach(memory):
        monkeypatch.setattr(memory.reranker, "rerank", None)  # Mem0 keeps what it has and goes on
        assert texts_of(search(memory, top_k=10)) == plain


def test_a_release_without_the_retrieval_step_still_reranks_its_pool(tmp_path: Path) -> None:
    class Restructured(Memory):  # type: ignore[misc]
        """Embeds and searches in `search` itself, and gives the reranker 60 candidates."""

        _search_vector_store = property()

        def search(self, query: str, *, top_k: int = 20, rerank: bool = False, **_: Any) -> Any:
            vector = self.embedding_model.embed(query, "search")
            hits = self.vector_store.search(query=query, vectors=vector, top_k=60, filters=USER)
            rows = [{"id": h.id, "memory": h.payload["data"], "score": h.score} for h in hits]
            if rerank and self.reranker:
                return {"results": self.reranker.rerank(query, rows, top_k)}
            return {"results": rows[:top_k]}

    memory = make(tmp_path, FACTS, Restructured)
    with adapter.attach(memory, pool_size=200):
        assert texts_of(search(memory, top_k=10)) == pursued(FACTS, 10, 60)


def test_the_source_edits_are_real(tmp_path: Path) -> None:
    """Without the adapter, each fix shows a reranker the pool it promises."""
    seen: list[int] = []

    class Watching:
        def rerank(self, query: str, documents: list[Any], top_k: int) -> list[Any]:
            seen.append(len(documents))
            return documents[:top_k]

    for n, fixed in enumerate((as_it_is, search_asks_for_more, retrieval_keeps_what_it_fetched)):
        memory = make(tmp_path / str(n), FACTS, fixed(Memory))
        memory.reranker = Watching()
        search(memory, top_k=10)
    assert seen == [10, 60, 60]
    assert asyncio.iscoroutinefunction(search_asks_for_more(AsyncMemory).search)
