"""The plain baseline: cosine top 200 over the same memories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mempursuit_adapters import Pool
from mempursuit_eval.backbones.base import Backbone
from mempursuit_eval.encoders.base import Encoder
from mempursuit_eval.records import MemoryRecord

POOL_SIZE = 200


class RagBackbone(Backbone):
    """Exact cosine search over a matrix on disk; no framework behind it."""

    name = "rag"

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        super().__init__(encoder, folder)
        self._file = folder / "vectors.npz"
        if self._file.exists():
            self._load()

    @property
    def target(self) -> Any:
        """There is no framework to attach to."""
        return self

    def fill(self, records: Sequence[MemoryRecord]) -> None:
        """Embed and save the records."""
        self.folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            self._file,
            ids=np.array([r.id for r in records], dtype=np.str_),
            vectors=self.encoder.encode([r.text for r in records]),
        )
        self._load()

    def pool(self, question: str) -> Pool:
        """Return the 200 memories of the largest cosine; ties keep the order of writing."""
        query = self.encoder.encode([question])[0]
        order = np.argsort(-(self._unit @ query), kind="stable")[:POOL_SIZE]
        return Pool(ids=[self._ids[i] for i in order], vectors=self._vectors[order], query=query)

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Return numpy's version."""
        return {"numpy": np.__version__}

    def _load(self) -> None:
        with np.load(self._file, allow_pickle=False) as saved:
            self._ids = saved["ids"].tolist()
            self._vectors = saved["vectors"]
        lengths = np.linalg.norm(self._vectors, axis=1, keepdims=True)
        self._unit = self._vectors / np.where(lengths == 0, 1, lengths)
