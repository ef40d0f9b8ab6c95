"""One reranked search while it runs: what it must remember between Mem0's own steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mempursuit_adapters.patching import Around, Patches
from mempursuit_adapters.pool import Vector

# The search this thread or task is in. Mem0's async search runs its steps in worker threads, which
# get a copy of the context: they see the same object.
_current: ContextVar[InFlight | None] = ContextVar("mempursuit_mem0_search", default=None)


@dataclass(eq=False)
class InFlight:
    """One search of one memory.

    Attributes:
        memory: the Mem0 object that searches.
        text: the query as the user gave it.
        query: (d,) the embedding Mem0 computed for it, once it has.
        replay: hand `query` out instead of embedding the text a second time.
    """

    memory: Any
    text: Any
    query: Vector | None = field(default=None, repr=False)
    replay: bool = False

    def asks_for(self, text: Any, embedder: Any) -> bool:
        """Say whether embedding `text` with `embedder` gives this search's query vector."""
        if embedder is not self.memory.embedding_model:
            return False
        # Mem0 trims the query before it embeds it.
        texts = text, self.text
        return all(isinstance(t, str) for t in texts) and text.strip() == self.text.strip()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make this the current search, and note the query vector as Mem0 embeds it."""
        token = _current.set(self)
        try:
            with listening(getattr(self.memory, "embedding_model", None), "embed", _embed):
                yield
        finally:
            _current.reset(token)


def current() -> InFlight | None:
    """Return the search the calling thread or task is in."""
    return _current.get()


_lock = threading.Lock()
# (id of the owner, method) -> what to undo, how many searches are in flight
_listeners: dict[tuple[int, str], tuple[Patches, int]] = {}


@contextmanager
def listening(owner: Any, name: str, around: Around) -> Iterator[None]:
    """Wrap `owner.name` as long as any search that uses it is in flight."""
    key = id(owner), name
    with _lock:
        patches, searches = _listeners.get(key, (None, 0))
        if patches is None:
            patches = Patches()
            # What cannot be wrapped is not heard: without the query vector, the search keeps
            # Mem0's own order.
            with suppress(Exception):
                patches.method(owner, name, around)
        _listeners[key] = patches, searches + 1
    try:
        yield
    finally:
        with _lock:
            patches, searches = _listeners.pop(key)
            if searches > 1:
                _listeners[key] = patches, searches - 1
            else:
                patches.undo()


def _embed(call: Callable[..., Any], embedder: Any, *args: Any, **kwargs: Any) -> Any:
    search = _current.get()
    text = args[0] if args else kwargs.get("text")
    if search is None or not search.asks_for(text, embedder):
        return call(*args, **kwargs)
    if search.replay and search.query is not None:
        return search.query
    vector = call(*args, **kwargs)
    if search.query is None:
        search.query = vector
    return vector
