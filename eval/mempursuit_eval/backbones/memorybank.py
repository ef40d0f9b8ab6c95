"""MemoryBank: FAISS seeds by L2, grown into chunks by date (a port of its read path)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal

from mempursuit_adapters import Pool
from mempursuit_adapters.memorybank import pool as adapter_pool
from mempursuit_eval.backbones.base import Backbone
from mempursuit_eval.encoders.base import Encoder
from mempursuit_eval.ports.memorybank import CHUNK_SIZE, FAISS, Document
from mempursuit_eval.records import MemoryRecord

POOL_SIZE = 200


class MemoryBankBackbone(Backbone):
    """One FAISS store a conversation; the budget counts seeds, not what they grow into."""

    name = "memorybank"
    kind: ClassVar[Literal["package", "port"]] = "port"
    expands: ClassVar[bool] = True

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        super().__init__(encoder, folder)
        self._store: FAISS | None = None

    @property
    def target(self) -> FAISS:
        """The vector store."""
        if self._store is None:
            self._store = FAISS.load_local(self.folder, lambda text: self.encoder.encode([text])[0])
            labels = self._store.index_to_docstore_id
            self._labels = {i: label for label, i in labels.items()}
        return self._store

    def fill(self, records: Sequence[MemoryRecord]) -> None:
        """Write the records' texts, session by session; a session is one date."""
        oldest_first = sorted(records, key=lambda record: (record.when, record.session))
        documents = {
            record.id: Document(
                record.text, {"source": f"{record.when:%Y-%m-%d %H:%M}, session {record.session}"}
            )
            for record in oldest_first
        }
        store = FAISS.from_documents(documents, self.encoder.encode, self.encoder.dimension)
        store.save_local(self.folder)
        self._store = None

    def pool(self, question: str) -> Pool:
        """Return the 200 memories nearest by L2."""
        found = adapter_pool(self.target, question, pool_size=POOL_SIZE)
        ids = [self.target.index_to_docstore_id[label] for label in found.ids]  # type: ignore[index]
        return Pool(ids, found.vectors, found.query, found.items, found.texts)

    def context(self, pool: Pool, positions: Sequence[int]) -> list[str]:
        """Return the ids of the chunks that the chosen seeds grow into, oldest date first."""
        store = self.target
        seeds = [self._labels[str(pool.ids[i])] for i in positions]
        # `fill` stores oldest first, so the reader's order by date is label order.
        return [store.index_to_docstore_id[label] for run in store.runs(seeds) for label in run]

    def facts(self) -> dict[str, Any]:
        """Return what this port fixes."""
        return {
            "index": "IndexFlatL2, vectors as the encoder gives them",
            "budget_counts": "seeds; their neighbours come on top",
            "chunk_size": CHUNK_SIZE,
            "dates": "a session is one date",
            "stored": "the memory alone: no date header, no summaries (they need an LLM)",
        }

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Return the version of the store the port runs on."""
        return {"faiss-cpu": version("faiss-cpu")}
