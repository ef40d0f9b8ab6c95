"""LightMem: the real package where it can be imported, else a port of its read path."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

from mempursuit_adapters import Pool, lightmem
from mempursuit_adapters.patching import Patches
from mempursuit_eval.backbones.base import Backbone
from mempursuit_eval.backbones.local_qdrant import commit_without_waiting
from mempursuit_eval.encoders.base import Encoder
from mempursuit_eval.ports.lightmem import Embedder, open_memory
from mempursuit_eval.records import MemoryRecord

RECORD_ID = "record_id"  # our id, kept in the payload


def _import_package() -> tuple[ModuleType | None, str]:
    """Return LightMem's own module and "", or None and why it cannot be used."""
    try:
        module = import_module("lightmem.memory.lightmem")
        return (module, "") if hasattr(module, "LightMemory") else (None, "it has no LightMemory")
    except Exception as error:  # PyPI's placeholder of that name does not even parse
        return None, f"{type(error).__name__}: {error}"


_package, _why_port = _import_package()


def package() -> ModuleType | None:
    """Return LightMem's module `lightmem.memory.lightmem`, None where it cannot be imported."""
    return _package


class LightMemBackbone(Backbone):
    """LightMem's Qdrant store on disk, written with its payloads; top 60 by cosine."""

    name = "lightmem"
    kind: ClassVar[Literal["package", "port"]] = "package" if _package else "port"

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        super().__init__(encoder, folder)
        embedder, path = _Embedder(encoder), folder / "qdrant"
        if _package is not None:
            self._memory = open_package(_package, embedder, path, encoder.dimension)
        else:
            self._memory = open_memory(embedder, path, encoder.dimension)
        commit_without_waiting(self._memory.embedding_retriever)

    @property
    def target(self) -> Any:
        """The LightMemory."""
        return self._memory

    def fill(self, records: Sequence[MemoryRecord]) -> None:
        """Insert one entry a record, embedded in one batch."""
        self._memory.embedding_retriever.insert(
            vectors=self.encoder.encode([r.text for r in records]).tolist(),
            payloads=[_payload(r) for r in records],
            ids=[str(uuid.uuid5(uuid.NAMESPACE_OID, r.id)) for r in records],
        )

    def pool(self, question: str) -> Pool:
        """Return the pool the adapter chooses from, under record ids."""
        pool = lightmem.pool(self._memory, question)
        return replace(pool, ids=[hit["payload"][RECORD_ID] for hit in pool.items])

    def facts(self) -> dict[str, Any]:
        """Say why the port was used, if it was."""
        return {"port_because": _why_port} if _why_port else {}

    def close(self) -> None:
        """Release Qdrant's folder."""
        self._memory.embedding_retriever.client.close()

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Return Qdrant's version, and LightMem's if it is the real one."""
        versions = {"qdrant-client": version("qdrant-client")}
        if _package is not None:
            try:
                versions["lightmem"] = version("lightmem")
            except PackageNotFoundError:  # a source folder on the path
                versions["lightmem"] = "source"
        return versions


class _Embedder:
    """The run's encoder behind LightMem's interface."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def embed(self, text: str) -> list[float]:
        vector: list[float] = self._encoder.encode([text])[0].tolist()
        return vector


def open_package(package: ModuleType, embedder: Embedder, path: Path, dimension: int) -> Any:
    """Build the real LightMemory over a store on disk, without the parts that need an LLM.

    `package` is the module `lightmem.memory.lightmem`.
    """
    searcher = {
        "collection_name": "lightmem",
        "embedding_model_dims": dimension,
        "path": str(path),
        "on_disk": True,
    }
    config = {
        "memory_manager": {
            "model_name": "openai",
            "configs": {"model": "gpt-4o-mini", "api_key": "not used"},
        },
        "retrieve_strategy": "embedding",
        "embedding_retriever": {"model_name": "qdrant", "configs": searcher},
    }
    for name in ("LightMemory", "lightmem"):  # several lines a search, on the terminal
        logging.getLogger(name).setLevel(logging.WARNING)
    patches = Patches()
    # The writer's buffer would download a tokenizer; nothing is written through it here.
    patches.attribute(package, "ShortMemBufferManager", lambda **_: None)
    try:
        memory = package.LightMemory.from_config(config)
    finally:
        patches.undo()
    memory.text_embedder = embedder
    return memory


def _payload(record: MemoryRecord) -> dict[str, Any]:
    """Return the fields LightMem stores with an extracted fact."""
    return {
        "time_stamp": record.when.isoformat(timespec="milliseconds"),
        "float_time_stamp": record.when.timestamp(),
        "weekday": record.when.strftime("%a"),
        "topic_id": record.session,
        "topic_summary": "",
        "category": "",
        "subcategory": "",
        "memory_class": "",
        "memory": record.text,
        "original_memory": "",
        "compressed_memory": "",
        "speaker_id": record.speaker,
        "speaker_name": record.speaker,
        "consolidated": False,
        RECORD_ID: record.id,
    }
