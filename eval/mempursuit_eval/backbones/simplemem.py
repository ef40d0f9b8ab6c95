"""SimpleMem's own store and searches on LanceDB, read without an LLM."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import simplemem.database.vector_store as simplemem_store
from numpy.typing import NDArray
from simplemem.core.hybrid_retriever import HybridRetriever
from simplemem.models.memory_entry import MemoryEntry

from mempursuit_adapters import Pool
from mempursuit_adapters.simplemem import pool as adapter_pool
from mempursuit_eval.backbones.base import Backbone
from mempursuit_eval.encoders.base import Encoder
from mempursuit_eval.records import MemoryRecord

_log = logging.getLogger(__name__)
_quiet: ContextVar[bool] = ContextVar("simplemem_quiet", default=False)


class SimpleMemBackbone(Backbone):
    """SimpleMem 0.1.0: semantic, keyword and structured search, merged its way."""

    name = "simplemem"

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        super().__init__(encoder, folder)
        with _muted():
            self._store = _Store(str(folder / "lancedb"), _EmbeddingModel(encoder), "memories")
        self._retriever = _WithoutLLM(None, self._store, enable_planning=False)

    @property
    def target(self) -> Any:
        """The HybridRetriever."""
        return self._retriever

    def fill(self, records: Sequence[MemoryRecord]) -> None:
        """Write the records as entries; what SimpleMem's LLM would extract stays empty."""
        entries = [
            MemoryEntry(
                entry_id=record.id,
                lossless_restatement=record.text,
                timestamp=record.when.isoformat(timespec="seconds"),
                persons=[record.speaker],
            )
            for record in records
        ]
        with _muted():
            self._store.add_entries(entries)

    def pool(self, question: str) -> Pool:
        """Return the deduplicated union of the searches, in SimpleMem's merge order."""
        with _muted():
            return adapter_pool(self._retriever, question)

    def facts(self) -> dict[str, Any]:
        """Return which searches ran, and how wide."""
        return {
            "searches": {
                "semantic": f"the question, top {self._retriever.semantic_top_k}",
                "keyword": f"BM25 on the question's words, top {self._retriever.keyword_top_k}",
                "structured": "nothing to filter by: the conditions come from an LLM",
            },
            "planning": "off (needs an LLM)",
            "reflection": "off (needs an LLM)",
            "keyword_index": "LanceDB's native full-text index, stemmed",
        }

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Return the versions of SimpleMem and of its store."""
        return {name: version(name) for name in ("simplemem", "lancedb")}


class _WithoutLLM(HybridRetriever):  # type: ignore[misc]
    """The retriever, running its three searches on what it assumes when its LLM is silent.

    SimpleMem 0.3.0 merges semantic, keyword and structured results in this order; 0.1.0 has the
    same three searches, but its `retrieve` calls the semantic one alone.
    """

    def retrieve(self, query: str, enable_reflection: bool | None = None) -> list[Any]:
        """Return the deduplicated union of the three searches."""
        analysis = {"keywords": [query], "persons": [], "entities": []}
        found = [
            *self._semantic_search(query),
            *self._keyword_search(query, analysis),
            *self._structured_search(analysis),
        ]
        return list(self._merge_and_deduplicate_entries(found))


class _Store(simplemem_store.VectorStore):  # type: ignore[misc]
    def _init_fts_index(self) -> None:
        # SimpleMem asks for a Tantivy index, which LanceDB has dropped (0.37 at the latest): it
        # prints that the index was skipped, and every keyword search comes back empty. This is the
        # native index of its own cloud branch, with the stemming its Tantivy index has.
        self.table.create_fts_index(
            "lossless_restatement", replace=True, stem=True, remove_stop_words=False
        )
        self._fts_initialized = True


class _EmbeddingModel:
    """What SimpleMem asks of its embedding model, which pulls torch, served by an Encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.dimension = encoder.dimension

    def encode_documents(self, documents: list[str]) -> NDArray[np.float32]:
        """Return one vector of unit length a document, as SimpleMem's own model does."""
        vectors = self._encoder.encode(documents)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)

    def encode_single(self, text: str, is_query: bool = False) -> NDArray[np.float32]:
        """Return the vector of one text."""
        return np.asarray(self.encode_documents([text])[0])


@contextmanager
def _muted() -> Iterator[None]:
    """Send what this thread makes SimpleMem's store print to the log instead."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def _print(*values: object, **options: Any) -> None:
    if not _quiet.get():
        builtins.print(*values, **options)
        return
    line = " ".join(map(str, values))
    if line.startswith("Error"):
        # SimpleMem prints the error of a failed search and returns nothing; in an evaluation
        # that must not pass for a search that found nothing.
        raise RuntimeError(f"SimpleMem: {line}")
    _log.debug("%s", line)


# Not sys.stdout, which belongs to the whole process and its progress bars.
simplemem_store.print = _print
