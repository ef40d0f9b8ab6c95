"""The toy framework's adapter: the example to copy for another framework."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from integration_tests.conformance.toy import Row, ToyIndex, ToyMemory
from mempursuit_adapters.dials import check_pool_size, resolve_dials
from mempursuit_adapters.handle import Handle, Installation
from mempursuit_adapters.patching import Patches
from mempursuit_adapters.pool import Pool
from mempursuit_adapters.reader import Reader

_installation = Installation("toy")
# Whether a user's search is under way in this thread or task; `summary` asks the same index.
_searching: ContextVar[bool] = ContextVar("toy_searching", default=False)


def attach(
    memory: ToyMemory, *, pool_size: int = 20, preset: str = "paper", **dials: Any
) -> Handle:
    """Let `memory.search` choose by pursuit."""
    if not isinstance(memory, ToyMemory):
        raise TypeError(f"memory must be a ToyMemory, got {type(memory).__name__}")
    return _patch(memory, memory.index, pool_size, preset, dials)


def install(*, pool_size: int = 20, preset: str = "paper", **dials: Any) -> Handle:
    """Do so for every ToyMemory."""
    _installation.refuse_second()
    return _installation.keep(_patch(ToyMemory, ToyIndex, pool_size, preset, dials))


def uninstall() -> None:
    """Undo :func:`install`."""
    _installation.uninstall()


def pool(memory: ToyMemory, query: str, *, pool_size: int = 20) -> Pool:
    """Return what `memory.search(query)` chooses from once attached."""
    vector = memory.embed(query)
    return _pool(memory.index, vector, memory.index.nearest(vector, pool_size))


def _patch(memory: Any, index: Any, pool_size: int, preset: str, dials: dict[str, Any]) -> Handle:
    size = check_pool_size(pool_size)
    reader = Reader("toy", resolve_dials(preset, **dials))

    def search(call: Any, memory: ToyMemory, *args: Any, **kwargs: Any) -> list[Row]:
        token = _searching.set(True)
        try:
            return call(*args, **kwargs)
        finally:
            _searching.reset(token)

    def nearest(call: Any, index: ToyIndex, vector: Any, limit: int) -> list[Row]:
        if not _searching.get():
            return call(vector, limit)
        try:
            rows = call(vector, max(limit, size))
        except Exception as error:
            reader.failed(error)
            return call(vector, limit)
        choice = reader.read(lambda: _pool(index, vector, rows), limit)
        return rows[:limit] if choice is None else [rows[i] for i in choice.positions]

    with Patches() as patches:
        patches.method(memory, "search", search)
        patches.method(index, "nearest", nearest)
    return Handle(reader, patches)


def _pool(index: ToyIndex, query: Any, rows: list[Row]) -> Pool:
    ids = [row["id"] for row in rows]
    return Pool(ids, index.vectors(ids), query, rows, [row["text"] for row in rows])
