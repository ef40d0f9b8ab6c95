"""`mempursuit-eval bench lightmem|simplemem|memorybank`: what MemPursuit adds to their searches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from mempursuit_adapters import lightmem, memorybank, simplemem
from mempursuit_adapters.dials import resolve_dials
from mempursuit_adapters.views import view
from mempursuit_eval.backbones import Backbone, backbone_class
from mempursuit_eval.bench.overhead import Searches, measure, overhead_table
from mempursuit_eval.bench.report import Report, machine
from mempursuit_eval.bench.stores import LiftedEncoder, bundled_questions, synthetic_memories
from mempursuit_eval.encoders import Encoder, MemoEncoder
from mempursuit_eval.tables import NAMES

LIGHTMEM_POOL, MEMORYBANK_POOL = 60, 200  # the adapters' defaults


@dataclass(frozen=True)
class Options:
    """The size of the measurement.

    Attributes:
        memories: how many the store holds.
        dimension: of the vectors; above the encoder's own, they are lifted isometrically.
        k: the budget.
        preset: the dials ("paper" or "auto").
        questions: how many are asked, at most those of the bundled data set.
        rounds: how often each is asked.
    """

    memories: int = 5000
    dimension: int = 256
    k: int = 10
    preset: str = "paper"
    questions: int = 99
    rounds: int = 3


def bench_framework(
    name: str,
    encoder: Encoder,
    options: Options,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Fill a store of the framework called `name` and measure its search without and with.

    Raises:
        ValueError: `name` has no measurement here, or an option is out of range.
        BackboneUnavailableError: the framework is not installed.
    """
    if name not in _SEARCHES:
        raise ValueError(f"{name!r} is not one of {', '.join(_SEARCHES)}")
    dials = resolve_dials(options.preset)
    setting = machine()
    if options.dimension != encoder.dimension:
        encoder = LiftedEncoder(encoder, options.dimension)
    # Looked up, so that the searches are the store's work alone and the shares of it the largest.
    encoder = MemoEncoder(encoder)
    questions = bundled_questions(options.questions)
    encoder.encode(questions)
    kind = backbone_class(name)
    with tempfile.TemporaryDirectory(prefix="mempursuit-bench-") as folder:
        backbone = kind(encoder, Path(folder))
        try:
            backbone.fill(synthetic_memories(options.memories))
            searches, note = _SEARCHES[name](backbone, options)
            pool = median(len(searches.pool(question)) for question in questions)
            samples = measure(
                searches, questions, k=options.k, dials=dials, rounds=options.rounds, tick=tick
            )
        finally:
            backbone.close()
    setting |= {
        "framework": {"backbone": kind.kind, **kind.versions()},
        "memories": options.memories,
        "dimension": options.dimension,
        "K": options.k,
        "pool": int(pool),
        "preset": options.preset,
        "encoder": encoder.name,
        "searches": f"{len(questions)} questions, {options.rounds} rounds",
    }
    return Report(
        name,
        f"{NAMES[name]}: what MemPursuit adds to a search",
        setting,
        [overhead_table(samples, f"{NAMES[name]}, {options.memories} memories, K = {options.k}")],
        [*_NOTES, note],
    )


_NOTES = (
    "Every question runs through all searches in turn, the order changing; added figures are "
    "medians of differences question by question, so parts need not sum to the whole. Question "
    "vectors are looked up, not computed: an embedding model's time would come on top of every "
    "search and make the shares smaller.",
)


def _lightmem(backbone: Backbone, options: Options) -> tuple[Searches, str]:
    memory = backbone.target
    searches = Searches(
        search=lambda question: memory.retrieve(question, limit=options.k),
        wide=lambda question: memory.retrieve(question, limit=max(options.k, LIGHTMEM_POOL)),
        attach=partial(lightmem.attach, memory, pool_size=LIGHTMEM_POOL, preset=options.preset),
        pool=backbone.pool,
    )
    return searches, (
        "The store is the embedded Qdrant on disk. The vectors come with the wide search, which "
        "LightMem has fetch them anyway."
    )


def _simplemem(backbone: Backbone, options: Options) -> tuple[Searches, str]:
    retriever = backbone.target
    searches = Searches(
        search=lambda question: retriever.retrieve(question),  # looked up while attached
        wide=None,
        attach=partial(simplemem.attach, retriever, k=options.k, preset=options.preset),
        pool=backbone.pool,
    )
    return searches, (
        "SimpleMem has no budget and returns all it finds; that is the pool, and no search is "
        "widened. Planning and reflection, which call a language model, are off. The adapter's "
        "part holds one query to LanceDB for the pool's vectors."
    )


def _memorybank(backbone: Backbone, options: Options) -> tuple[Searches, str]:
    store = backbone.target
    size = max(options.k, MEMORYBANK_POOL)
    wide = view(store, "index", _WideIndex(store.index, size))
    searches = Searches(
        search=lambda question: store.similarity_search_with_score(question, k=options.k),
        wide=lambda question: wide.similarity_search_with_score(question, k=options.k),
        attach=partial(memorybank.attach, store, pool_size=size, preset=options.preset),
        pool=backbone.pool,
    )
    return searches, (
        "The budget counts seeds; what they grow into follows them in all searches. The adapter's "
        "part holds the wide search, which in FAISS is one call with reading the vectors."
    )


class _WideIndex:
    """An index that looks for `size` neighbours and returns the first `k`."""

    def __init__(self, index: Any, size: int) -> None:
        self._index = index
        self._size = size

    def search(self, x: Any, k: int) -> tuple[Any, Any]:
        scores, labels = self._index.search(x, self._size)
        return scores[:, :k], labels[:, :k]


_SEARCHES: dict[str, Callable[[Backbone, Options], tuple[Searches, str]]] = {
    "lightmem": _lightmem,
    "simplemem": _simplemem,
    "memorybank": _memorybank,
}
FRAMEWORKS = tuple(_SEARCHES)
