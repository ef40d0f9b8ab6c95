"""LightMem: `LightMemory.retrieve` hands back the memories that pursuit picks.

    from mempursuit_adapters.lightmem import attach
    handle = attach(light_memory)              # retrieve(query, limit=10, ...) as before
    handle.detach()

Only `retrieve` changes. Updates and summaries ask the same searcher and keep their nearest
neighbours. `install()` covers every LightMemory of the process. The entry retriever of LightMem's
LoCoMo experiment, which scores entries in Python and never calls `retrieve`, can be attached too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mempursuit_adapters.dials import check_pool_size, resolve_dials
from mempursuit_adapters.handle import Handle, Installation
from mempursuit_adapters.lightmem.entries import entries_pool, patch_entry_retriever
from mempursuit_adapters.lightmem.memory import check_memory, patch_memory, pool
from mempursuit_adapters.patching import Patches
from mempursuit_adapters.reader import Reader
from mempursuit_core import AdaptiveStop
from mempursuit_core.presets import Discount

__all__ = ["attach", "entries_pool", "install", "pool", "uninstall"]

_FRAMEWORK = "lightmem"
_installation = Installation(_FRAMEWORK)


def attach(
    target: Any,
    *,
    pool_size: int = 60,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Let `target.retrieve` choose its memories by pursuit.

    Args:
        target: a LightMemory, or the entry retriever of LightMem's LoCoMo experiment (an object
            with `embedder` and `retrieve(entries, query_text, limit)`).
        pool_size: memories pursuit chooses from; a larger `limit` widens the pool to itself.
        preset: "paper" or "auto"; every dial given beside it replaces its value.
        discount, near_duplicate, stop: the dials.

    Raises:
        ValueError: an argument is out of range, or `target` has no embedding retriever.
        TypeError: `target` is neither of the two.
        RuntimeError: `target`, or the searcher it reads, already reads through MemPursuit.
    """
    size = check_pool_size(pool_size)
    dials = resolve_dials(preset, discount=discount, near_duplicate=near_duplicate, stop=stop)
    reader = Reader(_FRAMEWORK, dials)
    with Patches() as patches:
        if callable(getattr(target, "retrieve", None)) and hasattr(target, "embedder"):
            patch_entry_retriever(patches, target, reader, size)
        else:
            check_memory(target)
            patch_memory(patches, target, target.embedding_retriever, reader, size)
    return Handle(reader, patches)


def install(
    *,
    pool_size: int = 60,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Do as :func:`attach` for the class, and so for every LightMemory of this process.

    Raises:
        ImportError: LightMem cannot be imported.
        RuntimeError: it is already installed.
        ValueError: an argument is out of range.
    """
    size = check_pool_size(pool_size)
    dials = resolve_dials(preset, discount=discount, near_duplicate=near_duplicate, stop=stop)
    _installation.refuse_second()
    try:
        memory = import_module("lightmem.memory.lightmem").LightMemory
        searcher = import_module("lightmem.factory.retriever.embeddingretriever.qdrant").Qdrant
    except (ImportError, SyntaxError, AttributeError) as error:
        raise ImportError(
            f"LightMem cannot be imported ({error}). It is installed from its repository "
            "(github.com/zjunlp/LightMem); the package of that name on PyPI is a placeholder"
        ) from error
    reader = Reader(_FRAMEWORK, dials)
    with Patches() as patches:
        patch_memory(patches, memory, searcher, reader, size)
    return _installation.keep(Handle(reader, patches))


def uninstall() -> None:
    """Undo :func:`install`; does nothing if it is not installed."""
    _installation.uninstall()
