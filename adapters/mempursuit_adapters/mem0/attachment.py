"""Attaching to a Mem0 memory, or to Mem0's classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mempursuit_adapters.handle import Handle, Installation
from mempursuit_adapters.mem0.inflight import current
from mempursuit_adapters.mem0.pooling import unattached
from mempursuit_adapters.mem0.reading import PursuitRead
from mempursuit_adapters.mem0.settings import POOL_SIZE, Settings
from mempursuit_adapters.patching import Patches, is_patched
from mempursuit_adapters.reader import Reader
from mempursuit_core import AdaptiveStop
from mempursuit_core.presets import Discount

PROVIDER = "mempursuit"

_installation = Installation("mem0")


def attach(
    memory: Any,
    *,
    pool_size: int = POOL_SIZE,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    ridge: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Let `memory.search(..., rerank=True)` pick its results by pursuit.

    The results are the `top_k` memories that together reconstruct the query, picked from the
    `pool_size` best of Mem0's own search, in entry order, each with a `rerank_score`. A reranker
    the memory was configured with is set aside until `detach()`. `rerank=False` is untouched.
    While Mem0 is installed, this gives one memory dials of its own; `uninstall()` ends both.

    Args:
        memory: a `mem0.Memory` or `mem0.AsyncMemory`.
        pool_size: how many candidates to pick from.
        preset: "paper" or "auto"; the other arguments replace single dials of it.
        discount: how much of what is already accounted for is discounted, in [0, 1] or "auto".
        near_duplicate: cosine from which a candidate waits behind all others.
        ridge: regularisation of the refits.
        stop: stop before `top_k` once the reconstruction has stopped improving.

    Raises:
        TypeError: `memory` is neither.
        ValueError: an argument is out of range.
        RuntimeError: `memory` is attached already.
    """
    settings = Settings.resolve(
        pool_size,
        preset,
        discount=discount,
        near_duplicate=near_duplicate,
        ridge=ridge,
        stop=stop,
    )
    _check_memory(memory)
    from mempursuit_adapters.mem0.reranker import PursuitReranker

    reader = Reader("mem0", settings.dials)
    with Patches() as patches:
        if not is_patched(type(memory), "search"):
            _patch_search(patches, memory)
        elif getattr(memory.reranker, "reader", None) is not None:
            raise RuntimeError(
                f"this {type(memory).__name__} is attached already; detach() its handle before "
                "attaching another"
            )
        # Else install() has replaced the search; only whose dials it uses is left to say.
        patches.attribute(memory, "reranker", PursuitReranker(settings=settings, reader=reader))
        return Handle(reader, patches)


def install(
    *,
    pool_size: int = POOL_SIZE,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    ridge: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Let every Mem0 memory made from now on rerank by pursuit.

    Mem0's configuration then accepts `{"reranker": {"provider": "mempursuit", "config": {…}}}`,
    whose keys are the arguments of this function. A memory configured without any reranker uses
    the arguments given here; one configured with another reranker keeps it.

    Returns:
        A handle that counts the searches of all those memories.

    Raises:
        ValueError: an argument is out of range.
        RuntimeError: already installed.
    """
    settings = Settings.resolve(
        pool_size,
        preset,
        discount=discount,
        near_duplicate=near_duplicate,
        ridge=ridge,
        stop=stop,
    )
    _installation.refuse_second()
    from mem0 import AsyncMemory, Memory
    from mem0.utils.factory import RerankerFactory

    from mempursuit_adapters.mem0.reranker import PursuitReranker, PursuitRerankerConfig

    reader = Reader("mem0", settings.dials)
    default = PursuitReranker(settings=settings)

    def init(call: Callable[..., None], memory: Any, *args: Any, **kwargs: Any) -> None:
        call(*args, **kwargs)
        if memory.reranker is None:
            memory.reranker = default

    where = f"{PursuitReranker.__module__}.{PursuitReranker.__name__}"
    with Patches() as patches:
        patches.attribute(
            RerankerFactory,
            "provider_to_class",
            {**RerankerFactory.provider_to_class, PROVIDER: (where, PursuitRerankerConfig)},
        )
        for kind in (Memory, AsyncMemory):
            patches.method(kind, "__init__", init)
            _patch_search(patches, kind)
        return _installation.keep(Handle(reader, patches))


def uninstall() -> None:
    """Undo `install()`; memories made meanwhile search as Mem0 does. Calling it twice is fine."""
    _installation.uninstall()


def reader_of(memory: Any) -> Reader:
    """Return where the searches of `memory` are counted."""
    own: Reader | None = getattr(getattr(memory, "reranker", None), "reader", None)
    installed = _installation.handle
    return own or (installed.reader if installed is not None else unattached)


def _check_memory(memory: Any) -> None:
    from mem0 import AsyncMemory, Memory

    if not isinstance(memory, (Memory, AsyncMemory)):
        raise TypeError(
            f"memory must be a mem0.Memory or mem0.AsyncMemory, got {type(memory).__name__}; a "
            "client of the hosted platform keeps no vectors here to pick by"
        )


def _patch_search(patches: Patches, owner: Any) -> None:
    awaits = inspect.iscoroutinefunction(owner.search)
    patches.method(owner, "search", _search_async if awaits else _search)
    # Mem0 cuts to top_k in here, before its reranker is asked (mem0 issue 6448). Should a release
    # do without this step, its reranker picks from whatever pool it is given.
    if hasattr(owner, "_search_vector_store"):
        patches.method(owner, "_search_vector_store", _retrieve_async if awaits else _retrieve)


def _search(call: Callable[..., Any], memory: Any, *args: Any, **kwargs: Any) -> Any:
    read = _begin(memory, call, args, kwargs)
    if read is None:
        return call(*args, **kwargs)
    with read.running():
        found = call(*args, **kwargs)
    return read.finish(found)


async def _search_async(call: Callable[..., Any], memory: Any, *args: Any, **kwargs: Any) -> Any:
    read = _begin(memory, call, args, kwargs)
    if read is None:
        return await call(*args, **kwargs)
    with read.running():
        found = await call(*args, **kwargs)
    return read.finish(found)


def _retrieve(call: Callable[..., Any], memory: Any, *args: Any, **kwargs: Any) -> Any:
    read = current()
    if not isinstance(read, PursuitRead) or (wide := read.widened(call, args, kwargs)) is None:
        return call(*args, **kwargs)
    try:
        found = call(*wide[0], **wide[1])
        if read.too_shallow(found):
            found = call(*wide[0], **wide[1])
        return found
    except Exception as error:
        if not read.narrow_down():
            raise
        failure = error
    found = call(*args, **kwargs)
    read.narrowed(failure)
    return found


async def _retrieve_async(call: Callable[..., Any], memory: Any, *args: Any, **kwargs: Any) -> Any:
    read = current()
    if not isinstance(read, PursuitRead) or (wide := read.widened(call, args, kwargs)) is None:
        return await call(*args, **kwargs)
    try:
        found = await call(*wide[0], **wide[1])
        if read.too_shallow(found):
            found = await call(*wide[0], **wide[1])
        return found
    except Exception as error:
        if not read.narrow_down():
            raise
        failure = error
    found = await call(*args, **kwargs)
    read.narrowed(failure)
    return found


def _begin(memory: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> PursuitRead | None:
    """Return the read of a search that is to be reranked by pursuit, else None."""
    from mempursuit_adapters.mem0.reranker import PursuitReranker

    reranker = getattr(memory, "reranker", None)
    if not kwargs.get("rerank") or not isinstance(reranker, PursuitReranker):
        return None
    top_k = None
    with suppress(Exception):
        top_k = kwargs.get("top_k", inspect.signature(call).parameters["top_k"].default)
    return PursuitRead(
        memory,
        args[0] if args else kwargs.get("query"),
        settings=reranker.settings,
        reader=reader_of(memory),
        top_k=top_k if isinstance(top_k, int) else None,
    )
