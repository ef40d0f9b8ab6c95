"""The conformance suite on a LangChain FAISS store, whichever version it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import faiss
import numpy as np
import pytest

from integration_tests.conformance import (
    AdapterConformance,
    Fault,
    K,
    Memory,
    keys_in,
)
from integration_tests.conformance.data import DIMENSION
from mempursuit_adapters import Pool, memorybank

ONE_DIMENSION = "a FAISS index holds vectors of one dimension, one for every label"


class SpoiltIndex:
    """A FAISS index in which something cannot be read."""

    def __init__(self, index: Any, fault: Fault, label: int, narrow: int = K) -> None:
        self._index = index
        self._fault = fault
        self._label = label
        self._narrow = narrow

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def search(self, x: Any, k: int) -> Any:
        if self._fault is Fault.WIDE_SEARCH_FAILS and k > self._narrow:
            self._fault.spoil(x)
        return self._index.search(x, k)

    def search_and_reconstruct(self, x: Any, k: int) -> Any:
        if not self._fault.hits_one_memory:
            self._fault.spoil(x)
        scores, labels, vectors = self._index.search_and_reconstruct(x, k)
        at = np.nonzero(labels == self._label)
        vectors[at] = self._fault.spoil(vectors[at])
        return scores, labels, vectors


class FaissConformance(AdapterConformance):
    framework = "memorybank"
    adapter = memorybank

    def search(self, target: Any, query: str, k: int) -> Any:
        return target.similarity_search_with_score(query, k)

    def read(self, result: Any) -> list[str]:
        return [key for document, _ in result for key in keys_in(document.page_content)]

    def pool(self, target: Any, query: str, size: int) -> Pool:
        return self.adapter.pool(target, query, pool_size=size)

    def inject(self, target: Any, fault: Fault, memory: Memory, patch: pytest.MonkeyPatch) -> None:
        label = next(i for i, key in target.index_to_docstore_id.items() if key == memory.key)
        patch.setattr(target, "index", SpoiltIndex(target.index, fault, label))

    def other_calls(self, target: Any) -> Mapping[str, Callable[[], object]]:
        vector = self.encoder.encode([self.query])
        return {
            "index": lambda: [a.tolist() for a in target.index.search(vector, K)],
            "save": lambda: self._saved(target),
        }

    def _saved(self, target: Any) -> bytes:
        folder = self._home / "saved"
        target.save_local(str(folder))
        return (folder / "index.faiss").read_bytes()


def flat_index(memories: Sequence[Memory]) -> Any:
    index = faiss.IndexFlatL2(DIMENSION)
    for memory in memories:
        index.add(memory.vector.reshape(1, -1))
    return index


def labels_of(memories: Sequence[Memory]) -> dict[int, str]:
    return {label: memory.key for label, memory in enumerate(memories)}
