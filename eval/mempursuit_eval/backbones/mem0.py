"""Mem0 (mem0ai) with Qdrant on disk: its hybrid search, and its paper's two mirrored stores."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mempursuit_adapters import Pool
from mempursuit_adapters import mem0 as adapter
from mempursuit_eval.backbones.base import Backbone
from mempursuit_eval.backbones.local_qdrant import commit_without_waiting
from mempursuit_eval.encoders.base import Encoder
from mempursuit_eval.records import MemoryRecord

# Mem0 reads both when it is imported: no usage reports, nothing written to the home folder.
os.environ.setdefault("MEM0_TELEMETRY", "False")
os.environ.setdefault("MEM0_DIR", str(Path(tempfile.gettempdir()) / "mempursuit-mem0"))

from mem0 import Memory
from mem0.utils.lemmatization import lemmatize_for_bm25
from mem0.utils.spacy_models import get_nlp_full
from qdrant_client import QdrantClient

POOL_SIZE = 200  # top of the hybrid search
PER_STORE = 30  # of each speaker's store
BATCH = 256  # memories written at once
RECORD_ID = "record_id"  # our id, kept in the memory's metadata

_ONE_USER = "conversation"


class Mem0Backbone(Backbone):
    """One user a conversation holds both speakers' memories; top 200 of the hybrid search."""

    name = "mem0"

    def __init__(
        self, encoder: Encoder, folder: Path, store: Mapping[str, Any] | None = None
    ) -> None:
        """Open Mem0 over `store`, its `vector_store` block; by default Qdrant in `folder`."""
        super().__init__(encoder, folder)
        self._store = store or _qdrant(folder, encoder.dimension)
        self._memory = _open(encoder, folder, self._store)

    @property
    def target(self) -> Any:
        """The mem0.Memory."""
        return self._memory

    @property
    def filters(self) -> dict[str, str]:
        """What a user passes to `Memory.search`."""
        return {"user_id": _ONE_USER}

    def fill(self, records: Sequence[MemoryRecord]) -> None:
        """Write the payloads that `Memory.add(infer=False)` writes, in batches."""
        for start in range(0, len(records), BATCH):
            self._write(records[start : start + BATCH])
        # Qdrant rounds vectors once more when it loads them: reopening makes a fresh store answer
        # exactly as it will in a later run.
        self.close()
        self._memory = _open(self.encoder, self.folder, self._store)

    def pool(self, question: str) -> Pool:
        """Return what the attached memory picks from."""
        return _by_record(
            adapter.pool(self._memory, question, filters=self.filters, pool_size=POOL_SIZE)
        )

    def facts(self) -> dict[str, Any]:
        """Say which of the hybrid search's signals were at work, and Mem0's similarity floor."""
        search = inspect.signature(Memory.search).parameters
        return {
            "signals": _signals(self._memory),
            "threshold": search["threshold"].default,
            "store": self._store["provider"],
        }

    def close(self) -> None:
        """Close the history and release Qdrant's lock on the folder."""
        self._memory.close()
        client = getattr(self._memory.vector_store, "client", None)
        if isinstance(client, QdrantClient):
            client.close()

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Return the versions of Mem0 and its store."""
        return {name: version(name) for name in ("mem0ai", "qdrant-client")}

    def user(self, speaker: str) -> str:
        """Return the user whose store holds the memories about `speaker`."""
        return _ONE_USER

    def open_users(self, speakers: Sequence[str]) -> None:
        """Name whose memories are to be written, before any is."""

    def _write(self, records: Sequence[MemoryRecord]) -> None:
        ids = [str(uuid.uuid5(uuid.NAMESPACE_OID, r.id)) for r in records]
        payloads = [
            {
                "user_id": self.user(r.speaker),
                "role": "user",
                "data": r.text,
                "hash": hashlib.md5(r.text.encode()).hexdigest(),
                "created_at": r.when.isoformat(),
                "updated_at": r.when.isoformat(),
                "text_lemmatized": lemmatize_for_bm25(r.text),
                RECORD_ID: r.id,
            }
            for r in records
        ]
        vectors = self.encoder.encode([r.text for r in records]).tolist()
        self._memory.vector_store.insert(vectors=vectors, payloads=payloads, ids=ids)
        for identifier, record, payload in zip(ids, records, payloads, strict=True):
            # Links nothing unless spaCy and its model are there.
            self._memory._link_entities_for_memory(
                identifier, record.text, {"user_id": payload["user_id"]}
            )


class Mem0PaperBackbone(Mem0Backbone):
    """Mem0 as in its paper: one store a speaker, the top 30 of each merged by cosine."""

    name = "mem0-paper"

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        super().__init__(encoder, folder)
        self._index = folder / "speakers.json"
        self._users: list[str] = json.loads(self._index.read_text()) if self._index.exists() else []

    @property
    def store_filters(self) -> list[dict[str, str]]:
        """What a user passes to `search_across`: one filter a speaker."""
        return [{"user_id": user} for user in self._users]

    def fill(self, records: Sequence[MemoryRecord]) -> None:
        """Write each record to its speaker's store."""
        self.open_users([r.speaker for r in records])
        super().fill(records)

    def pool(self, question: str) -> Pool:
        """Return what `search_across` picks from."""
        return _by_record(
            adapter.pool_across(
                self._memory, question, filters=self.store_filters, per_store=PER_STORE
            )
        )

    def user(self, speaker: str) -> str:
        """Return the user whose store holds the memories about `speaker`."""
        return "_".join(speaker.split()) or "unknown"  # Mem0 allows no spaces in an id

    def open_users(self, speakers: Sequence[str]) -> None:
        """Name whose memories are to be written, before any is: one store each."""
        self._users = sorted({self.user(speaker) for speaker in speakers})
        self._index.write_text(json.dumps(self._users))


class _EncoderEmbedder:
    """The run's encoder as Mem0's embedder."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        vectors: list[list[float]] = self._encoder.encode(list(texts)).tolist()
        return vectors


class _NoLlm:
    """Stands where Mem0's language model would; the evaluator writes and reads without one."""

    def generate_response(self, *args: Any, **kwargs: Any) -> str:
        raise RuntimeError("the evaluator's Mem0 has no language model")


def _qdrant(folder: Path, dimension: int) -> dict[str, Any]:
    config = {
        "path": str(folder / "qdrant"),
        "collection_name": "memories",
        "embedding_model_dims": dimension,
        "on_disk": True,
    }
    return {"provider": "qdrant", "config": config}


def _open(encoder: Encoder, folder: Path, store: Mapping[str, Any]) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    unused = {"provider": "openai", "config": {"api_key": "unused"}}  # replaced below
    memory = Memory.from_config(
        {
            "embedder": unused,
            "llm": unused,
            "history_db_path": str(folder / "history.db"),
            "vector_store": store,
        }
    )
    commit_without_waiting(memory.vector_store)
    memory.embedding_model = _EncoderEmbedder(encoder)
    memory.llm = _NoLlm()
    return memory


def _by_record(pool: Pool) -> Pool:
    return replace(pool, ids=[row["metadata"][RECORD_ID] for row in pool.items])


def _signals(memory: Any) -> dict[str, bool]:
    return {
        "semantic": True,
        "bm25": memory.vector_store.keyword_search("memory", top_k=1) is not None,
        "entities": get_nlp_full() is not None,
    }
