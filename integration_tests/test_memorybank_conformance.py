"""MemoryBank's adapter passes the suite on the FAISS store that MemoryBank reads.

The MemoryBank read on top of it, which merges and sorts what it found and so has no entry order,
is in test_memorybank_original.py; today's FAISS store in test_memorybank_langchain.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from integration_tests.conformance import CountingEncoder, Memory
from integration_tests.memorybank_faiss import (
    ONE_DIMENSION,
    FaissConformance,
    flat_index,
    labels_of,
)
from integration_tests.memorybank_stores import old_langchain
from mempursuit_adapters import Handle


class TestOldLangChain(FaissConformance):
    """langchain 0.0.146's store where it is installed, elsewhere a stand-in on the real FAISS."""

    cannot: ClassVar = {
        "async": "langchain 0.0.146's FAISS store has no async search",
        "missing_vector": ONE_DIMENSION,
        "other_dimension": ONE_DIMENSION,
    }

    def build(self, memories: Sequence[Memory], encoder: CountingEncoder, home: Path) -> Any:
        store, document, docstore = old_langchain()
        documents = {
            m.key: document(page_content=m.text, metadata={"source": f"{m.at:%Y-%m-%d}"})
            for m in memories
        }
        return store(
            encoder.encode_one, flat_index(memories), docstore(documents), labels_of(memories)
        )

    def install(self, k: int, **options: Any) -> Handle:
        return self.adapter.install(old_langchain()[0], **options)
