"""Patching `HybridRetriever.retrieve`, of one retriever or of the class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mempursuit_adapters.dials import check_pool_size, resolve_dials
from mempursuit_adapters.handle import Handle, Installation
from mempursuit_adapters.patching import Patches, is_patched
from mempursuit_adapters.pool import Pool, Vector
from mempursuit_adapters.reader import Reader
from mempursuit_adapters.simplemem.listening import QuestionListener
from mempursuit_adapters.simplemem.stored_vectors import stored_vectors, table_of
from mempursuit_core import AdaptiveStop
from mempursuit_core.inputs import as_budget
from mempursuit_core.presets import Discount

_installation = Installation("simplemem")


def attach(
    target: Any,
    *,
    k: int = 10,
    pool_size: int | None = None,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Make `retrieve` (and so `ask`) of one SimpleMem return the `k` entries pursuit picks.

    Args:
        target: a `SimpleMemSystem`, its `HybridRetriever`, or 0.3.0's `SimpleMem()`.
        k: the budget; SimpleMem itself has none and returns everything it found.
        pool_size: how much of what SimpleMem found pursuit may look at, in SimpleMem's order;
            None, the default, is all of it. A larger `k` widens it to itself.
        preset: "paper" or "auto".
        discount, near_duplicate, stop: replace the preset's dial.

    Returns:
        Handle: `detach()` restores the target exactly.

    Raises:
        TypeError: `target` is none of these, or does not keep its entries in LanceDB.
        ValueError: `k`, `pool_size` or a dial is out of range.
        RuntimeError: `target` already reads through MemPursuit.
    """
    dials = resolve_dials(preset, discount=discount, near_duplicate=near_duplicate, stop=stop)
    budget, size = as_budget(k), _check_pool_size(pool_size)
    reader = Reader("simplemem", dials)
    retriever = _retriever(target)
    table_of(retriever.vector_store)
    retrieve = None if "retrieve" in vars(retriever) else type(retriever).retrieve
    reading = _Reading(reader, budget, size, retrieve)
    patches = Patches()
    patches.method(retriever, "retrieve", reading.around)
    return Handle(reader, patches)


def install(
    *,
    k: int = 10,
    pool_size: int | None = None,
    preset: str = "paper",
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Handle:
    """Do what :func:`attach` does for every `HybridRetriever`, those made already included.

    Raises:
        ImportError: SimpleMem is not installed.
        ValueError: `k`, `pool_size` or a dial is out of range.
        RuntimeError: it is installed already.
    """
    from simplemem.core.hybrid_retriever import HybridRetriever

    _installation.refuse_second()
    dials = resolve_dials(preset, discount=discount, near_duplicate=near_duplicate, stop=stop)
    budget, size = as_budget(k), _check_pool_size(pool_size)
    reader = Reader("simplemem", dials)
    reading = _Reading(reader, budget, size, HybridRetriever.retrieve)
    patches = Patches()
    patches.method(HybridRetriever, "retrieve", reading.around)
    return _installation.keep(Handle(reader, patches))


def uninstall() -> None:
    """Undo :func:`install`; does nothing if nothing is installed."""
    _installation.uninstall()


def pool(target: Any, query: str, *, pool_size: int | None = None) -> Pool:
    """Return the pool that pursuit chooses from when `target` retrieves for `query`.

    Runs SimpleMem's own `retrieve`, attached or not; takes what :func:`attach` takes.

    Raises:
        TypeError: as :func:`attach`.
        ValueError: `pool_size` is not a whole number of at least 1.
    """
    size = _check_pool_size(pool_size)
    retriever = _retriever(target)
    listener = QuestionListener(query)
    retrieve = type(retriever).retrieve
    if is_patched(type(retriever), "retrieve"):
        retrieve = retrieve.__wrapped__
    entries = retrieve(listener.on(retriever), query)
    return _pool(retriever, entries, listener.vector, size)


@dataclass(frozen=True)
class _Reading:
    """What a patched `retrieve` does.

    `retrieve` is SimpleMem's own, bound to no retriever. It is None if this very object carries
    somebody else's replacement, which cannot be bound to a view and so runs unheard.
    """

    reader: Reader
    k: int
    pool_size: int | None
    retrieve: Callable[..., list[Any]] | None

    def around(
        self, call: Callable[..., list[Any]], retriever: Any, query: str, *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Retrieve as SimpleMem does and return the K entries chosen from what it found."""
        listener = QuestionListener(query)
        trouble: Exception | None = None
        if self.retrieve is not None:
            try:
                call = partial(self.retrieve, listener.on(retriever))
            except Exception as error:
                trouble = error
        entries = call(query, *args, **kwargs)

        def fetch() -> Pool:
            if trouble is not None:
                raise trouble
            size = None if self.pool_size is None else max(self.pool_size, self.k)
            return _pool(retriever, entries, listener.vector, size)

        choice = self.reader.read(fetch, self.k)
        if choice is None:
            return entries[: self.k]
        by_id = {entry.entry_id: entry for entry in reversed(entries)}
        return [by_id[i] for i in choice.ids]


def _pool(
    retriever: Any, entries: Sequence[Any], query: Vector | None, pool_size: int | None
) -> Pool:
    """Return the entries found, deduplicated, with the vectors the store has for them."""
    first = {entry.entry_id: entry for entry in reversed(entries)}
    ids = list(dict.fromkeys(entry.entry_id for entry in entries))[:pool_size]
    vectors = stored_vectors(table_of(retriever.vector_store), ids)
    items = [first[i] for i in ids]
    return Pool(ids, vectors, query, items, [entry.lossless_restatement for entry in items])


def _retriever(target: Any) -> Any:
    """Return the HybridRetriever behind what the user handed in."""
    if hasattr(target, "_backend"):  # 0.3.0's SimpleMem() picks its system on the first call
        if target._backend is None:
            raise TypeError(
                "target has not chosen its mode yet: use it once (add_dialogue) before attach(), "
                "make it with simplemem.create(mode='text'), or use install()"
            )
        target = target._backend
    retriever = getattr(target, "hybrid_retriever", target)
    if not (hasattr(retriever, "retrieve") and hasattr(retriever, "vector_store")):
        raise TypeError(
            f"target must be a SimpleMemSystem or its HybridRetriever, got {type(target).__name__}"
        )
    return retriever


def _check_pool_size(pool_size: int | None) -> int | None:
    return None if pool_size is None else check_pool_size(pool_size)
