"""Attaching to one FAISS store, to one MemoryBank retrieval, or to the FAISS class."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache, partial
from importlib import import_module
from inspect import Signature, signature
from typing import Any

import numpy as np

from mempursuit_adapters.choice import Choice
from mempursuit_adapters.dials import check_pool_size, resolve_dials
from mempursuit_adapters.handle import Handle, Installation
from mempursuit_adapters.memorybank.seeds import Keep, SeedIndex, document_of, seed_pool
from mempursuit_adapters.patching import Patches, is_patched
from mempursuit_adapters.pool import Pool
from mempursuit_adapters.reader import Reader
from mempursuit_adapters.views import is_view, view
from mempursuit_core import AdaptiveStop
from mempursuit_core.inputs import as_budget
from mempursuit_core.presets import Discount

# The choices of the async search under way, whose worker threads see this task's list.
_made: ContextVar[list[Choice] | None] = ContextVar("mempursuit_memorybank_made", default=None)

_installation = Installation("memorybank")

# Where every similarity search of a store ends up, and the one place that asks the index.
_BY_VECTOR = "similarity_search_with_score_by_vector"
_BY_VECTOR_ASYNC = "a" + _BY_VECTOR
# The searches that call it on `self`.
_CALLERS = ("similarity_search_with_score", "similarity_search_by_vector")


def attach(
    target: Any,
    *,
    k: int | None = None,
    pool_size: int = 200,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Let the similarity searches of `target` start from the seeds pursuit picks.

    Args:
        target: a LangChain FAISS store, or MemoryBank's LocalMemoryRetrieval; of that one
            `search_memory` is covered with every store it is given, except stores attached
            themselves, which keep their own dials.
        k: seeds to pick; None keeps the number the framework asks for (MemoryBank's `top_k`).
        pool_size: the index's nearest that pursuit chooses from; asking for more widens the pool.
        preset: "paper" or "auto".
        discount, near_duplicate, stop: replace the preset's dial.

    Returns:
        Handle: `detach()` restores the target exactly.

    Raises:
        TypeError: `target` is neither.
        ValueError: `k`, `pool_size` or a dial is out of range.
        RuntimeError: `target` already reads through MemPursuit.
    """
    seeds = _seeds(k, pool_size, preset, discount, near_duplicate, stop)
    with Patches() as patches:
        if callable(getattr(target, _BY_VECTOR, None)) and hasattr(target, "index"):
            _refuse_covered(target)
            seeds.patch(patches, target)
        elif callable(getattr(target, "search_memory", None)):
            patches.method(target, "search_memory", seeds.search_memory)
        else:
            raise TypeError(
                "target must be a LangChain FAISS vector store or MemoryBank's "
                f"LocalMemoryRetrieval, got {type(target).__name__}"
            )
    return Handle(seeds.reader, patches)


def install(
    faiss_class: type | None = None,
    *,
    k: int | None = None,
    pool_size: int = 200,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Do as :func:`attach` for LangChain's FAISS class, and so for every store of the process.

    Stores attached already keep their own handle. MemoryBank replaces a method of the class each
    time it loads an index; it may do so before or after this call.

    Args:
        faiss_class: the class to cover; None finds langchain-community's, or the one of the
            langchain of 2023 that MemoryBank pins.
        k, pool_size, preset, discount, near_duplicate, stop: as for :func:`attach`.

    Raises:
        ImportError: there is no FAISS class to be found.
        ValueError: `k`, `pool_size` or a dial is out of range.
        RuntimeError: it is installed already.
    """
    seeds = _seeds(k, pool_size, preset, discount, near_duplicate, stop)
    _installation.refuse_second()
    owner = _find_faiss() if faiss_class is None else faiss_class
    with Patches() as patches:
        seeds.patch(patches, owner)
        # MemoryBank's load_memory_index overwrites the method above; these two stay.
        for name in _CALLERS:
            patches.method(owner, name, seeds.caller)
    return _installation.keep(Handle(seeds.reader, patches))


def uninstall() -> None:
    """Undo :func:`install`; does nothing if nothing is installed."""
    _installation.uninstall()


def pool(vector_store: Any, query: str, *, pool_size: int = 200) -> Pool:
    """Return the pool that pursuit chooses from when `vector_store` is searched for `query`.

    Embeds `query` once, the store's way; ids are FAISS labels, items the index's scores. Works
    attached or not, and changes nothing.

    Raises:
        ValueError: `pool_size` is not a whole number of at least 1.
        RuntimeError: the index cannot give its vectors back.
    """
    size = check_pool_size(pool_size)
    heard: list[Any] = []

    def hear(embedding: Any, *args: Any, **kwargs: Any) -> list[Any]:
        heard.append(embedding)
        return []

    embed_and_search = _framework_method(vector_store, _CALLERS[0])
    embed_and_search(view(vector_store, _BY_VECTOR, hear), query)
    row = np.array([heard[0]], dtype=np.float32)
    if getattr(vector_store, "_normalize_L2", False):
        import_module("faiss").normalize_L2(row)
    return seed_pool(vector_store, row[0], size)


class _Seeds:
    """What the patched methods do."""

    def __init__(self, reader: Reader, k: int | None, pool_size: int) -> None:
        self.reader = reader
        self._k = k
        self._pool_size = pool_size

    def patch(self, patches: Patches, owner: Any) -> None:
        """Replace the searches by vector of a store or its class."""
        patches.method(owner, _BY_VECTOR, self.by_vector)
        if hasattr(owner, _BY_VECTOR_ASYNC):
            patches.method(owner, _BY_VECTOR_ASYNC, self.by_vector_async)

    def by_vector(self, call: Callable[..., Any], store: Any, *args: Any, **kwargs: Any) -> Any:
        """Search by vector from picked seeds."""
        if is_view(store, "index"):  # a subclass's method, running on our view, called super()
            return call(*args, **kwargs)
        try:
            function = call.__func__  # type: ignore[attr-defined]
        except AttributeError as error:
            self.reader.fell_back("AttributeError", f"{_BY_VECTOR} is no method of it: {error}")
            return call(*args, **kwargs)
        return self._search(function, store, *args, **kwargs)

    async def by_vector_async(
        self, call: Callable[..., Any], store: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Let LangChain run the search in a worker thread, and make the choice the caller's."""
        made: list[Choice] = []
        token = _made.set(made)
        try:
            return await call(*args, **kwargs)
        finally:
            _made.reset(token)
            if made:
                self.reader.remember(made[-1])

    def caller(self, call: Callable[..., Any], store: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a search that asks `store` by vector, on a view that searches from picked seeds."""
        on_view = self._view(store)
        if on_view is store:
            return call(*args, **kwargs)
        return call.__func__(on_view, *args, **kwargs)  # type: ignore[attr-defined]

    def search_memory(
        self,
        call: Callable[..., Any],
        retrieval: Any,
        query: Any,
        vector_store: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Run MemoryBank's read on a view of the store that searches from picked seeds."""
        return call(query, self._view(vector_store), *args, **kwargs)

    def _view(self, store: Any) -> Any:
        """Return a view of `store` whose search by vector starts from picked seeds.

        A store that carries a search of its own, ours or anybody's, is returned as it is.
        """
        try:
            if _BY_VECTOR in vars(store) or is_view(store, _BY_VECTOR):
                return store
            function = _framework_method(store, _BY_VECTOR)
            return view(store, _BY_VECTOR, partial(self._search, function, store))
        except Exception as error:
            self.reader.fell_back(type(error).__name__, str(error))
            return store

    def _search(self, function: Callable[..., Any], store: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `function`, the store's search by vector, on a view whose index answers with picks.

        On any trouble of ours it runs on the store itself.
        """
        try:
            call = _signature(store).bind(store, *args, **kwargs)
        except TypeError:  # a wrong call; the framework says so in its own words
            return function(store, *args, **kwargs)
        except Exception as error:
            self.reader.fell_back(type(error).__name__, str(error))
            return function(store, *args, **kwargs)
        if self._k is not None:
            call.arguments["k"] = self._k
        native_args, native_kwargs = call.args, call.kwargs
        try:
            call.apply_defaults()
            budget = as_budget(call.arguments["k"])
            keep = _keep(store, call.arguments.get("filter"), kwargs.get("score_threshold"))
            index = SeedIndex(store, self._read, budget, self._pool_size, keep)
            on_view = view(store, "index", index)
        except Exception as error:
            self.reader.fell_back(type(error).__name__, str(error))
            return function(*native_args, **native_kwargs)
        return function(on_view, *native_args[1:], **native_kwargs)

    def _read(self, fetch: Callable[[], Pool], k: int) -> Choice | None:
        choice = self.reader.read(fetch, k)
        made = _made.get()
        if made is not None and choice is not None:
            made.append(choice)
        return choice


_signature_of = lru_cache(maxsize=64)(signature)  # reading one takes as long as a small search


def _signature(store: Any) -> Signature:
    """Return how the store's search by vector is called: (self, embedding, k, ...).

    A subclass may pass everything through (`*args, **kwargs`); then its base class tells.
    """
    for cls in type(store).__mro__:
        if _BY_VECTOR in vars(cls):
            found = _signature_of(vars(cls)[_BY_VECTOR])
            if "k" in found.parameters:
                return found
    raise LookupError(f"{type(store).__name__}.{_BY_VECTOR} takes no argument k")


def _keep(store: Any, wanted: Any, threshold: float | None) -> Keep | None:
    """Return LangChain's own filter and score threshold as a test on the pool, or None.

    LangChain applies both after the search; applied before the choice, every seed picked counts.
    """
    if wanted is None and threshold is None:
        return None
    accepts = None if wanted is None else store._create_filter_func(wanted)
    strategy = getattr(store, "distance_strategy", None)
    descending = getattr(strategy, "value", strategy) in ("MAX_INNER_PRODUCT", "JACCARD")

    def keep(label: int, score: float) -> bool:
        if threshold is not None and (score < threshold if descending else score > threshold):
            return False
        return accepts is None or bool(accepts(document_of(store, label).metadata))

    return keep


def _seeds(
    k: int | None,
    pool_size: int,
    preset: str,
    discount: Discount | None,
    near_duplicate: float | None,
    stop: AdaptiveStop | None,
) -> _Seeds:
    size = check_pool_size(pool_size)
    budget = None if k is None else as_budget(k)
    if budget is not None and size < budget:
        raise ValueError(
            f"pool_size must be at least k ({budget}), got {size}: "
            "a smaller pool cannot fill the budget"
        )
    dials = resolve_dials(preset, discount=discount, near_duplicate=near_duplicate, stop=stop)
    return _Seeds(Reader("memorybank", dials), budget, size)


def _refuse_covered(store: Any) -> None:
    """Raise RuntimeError if install() already covers `store`."""
    if any(is_patched(type(store), name) for name in (_BY_VECTOR, *_CALLERS)):
        raise RuntimeError(
            f"{type(store).__name__} already reads through MemPursuit by install(); "
            "uninstall() it before attaching to one store"
        )


def _framework_method(store: Any, name: str) -> Callable[..., Any]:
    """Return the function behind `store.name` in its class, below a replacement of ours."""
    kind = type(store)
    function: Callable[..., Any] = getattr(kind, name)
    return function.__wrapped__ if is_patched(kind, name) else function  # type: ignore[attr-defined]


def _find_faiss() -> type:
    """Return the FAISS class of this process: langchain-community's, else the old langchain's."""
    try:
        return _faiss_in("langchain_community.vectorstores.faiss")
    except (ImportError, AttributeError) as error:
        newer = error
    try:
        return _faiss_in("langchain.vectorstores.faiss")
    except (ImportError, AttributeError) as older:
        raise ImportError(
            f"no FAISS store to install into ({newer}; {older}): "
            "pip install langchain-community, or hand install() your FAISS class"
        ) from newer


def _faiss_in(module: str) -> type:
    found: type = import_module(module).FAISS
    return found
