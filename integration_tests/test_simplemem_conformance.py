"""The conformance suite on real SimpleMem over LanceDB, of the installed version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from integration_tests.conformance import (
    AdapterConformance,
    CountingEncoder,
    Fault,
    K,
    Memory,
    keys_in,
)
from integration_tests.conformance.data import DIMENSION
from integration_tests.simplemem_kit import (
    LAYOUT,
    HybridRetriever,
    MemoryEntry,
    VectorStore,
    ids,
)
from mempursuit_adapters import Handle, Pool, simplemem

WHOLE_STORE = 60  # SimpleMem's own width, above what the suite stores


class SimpleMemConformance(AdapterConformance):
    framework = "simplemem"
    adapter = simplemem
    cannot: ClassVar = {
        "async": "SimpleMem has no async interface",
        "wide_search_fails": "the adapter asks for no more than SimpleMem itself does",
    }

    def llm(self) -> Any:
        """Return the LLM client to plan with, or None for no planning."""
        return None

    def build(self, memories: Sequence[Memory], encoder: CountingEncoder, home: Path) -> Any:
        model = _EmbeddingModel(encoder)
        store = VectorStore(db_path=str(home), embedding_model=model, table_name="t")
        store.add_entries(
            [
                MemoryEntry(
                    # Ids with quotes everywhere, to be escaped in every query.
                    entry_id=f"'{m.key}'",
                    lossless_restatement=m.text,
                    timestamp=m.at.isoformat(),
                    persons=["Alice"],
                )
                for m in memories
            ]
        )
        llm = self.llm()
        return HybridRetriever(
            llm,
            store,
            semantic_top_k=WHOLE_STORE,
            enable_planning=llm is not None,
            max_reflection_rounds=1,
            enable_parallel_retrieval=False,  # else SimpleMem's own order differs from run to run
        )

    def attach(self, target: Any, k: int, **options: Any) -> Handle:
        return simplemem.attach(target, k=k, **options)

    def install(self, k: int, **options: Any) -> Handle:
        return simplemem.install(k=k, **options)

    def search(self, target: Any, query: str, k: int) -> list[Any]:
        entries: list[Any] = target.retrieve(query)
        return entries

    def read(self, result: list[Any]) -> list[str]:
        return [key for entry in result for key in keys_in(entry.lossless_restatement)]

    def pool(self, target: Any, query: str, size: int) -> Pool:
        return simplemem.pool(target, query, pool_size=size)

    def inject(self, target: Any, fault: Fault, memory: Memory, patch: pytest.MonkeyPatch) -> None:
        store = target.vector_store
        broken = _SpoiltTable(store.table, fault, f"'{memory.key}'")
        patch.setattr(store if LAYOUT == "0.1.0" else store.backend, "table", broken)

    def other_calls(self, target: Any) -> Mapping[str, Callable[[], object]]:
        store = target.vector_store
        new = MemoryEntry(entry_id="new", lossless_restatement="a new one", persons=["Bob"])
        return {
            "semantic search": lambda: ids(store.semantic_search(self.query, top_k=K)),
            "keyword search": lambda: ids(store.keyword_search(["fact"], top_k=K)),
            "structured search": lambda: ids(store.structured_search(persons=["Alice"], top_k=K)),
            "add": lambda: store.add_entries([new]),
            "added": lambda: ids(store.structured_search(persons=["Bob"])),
            "get all": lambda: ids(store.get_all_entries()),
            "clear": lambda: store.clear(),
            "cleared": lambda: ids(store.get_all_entries()),
        }


class TestWithoutPlanning(SimpleMemConformance):
    """`enable_planning=False`: one semantic search for the question."""


class TestPlanningAndReflection(SimpleMemConformance):
    """The default: several searches, of which the question's is one."""

    def llm(self) -> Any:
        return _Planner()


class _Planner:
    """An LLM that always has the same plan; SimpleMem takes the keys it wants."""

    def chat_completion(self, messages: Any, **_: Any) -> dict[str, Any]:
        return {
            "required_info": [],
            "queries": ["one part of it"],
            "keywords": ["fact"],
            "persons": ["Alice"],
            "assessment": "incomplete",
            "targeted_queries": ["what is missing"],
        }

    def extract_json(self, response: Any) -> Any:
        return response


class _EmbeddingModel:
    """The suite's encoder behind SimpleMem's interface."""

    dimension = DIMENSION

    def __init__(self, encoder: CountingEncoder) -> None:
        self._encoder = encoder

    def encode_documents(self, documents: list[str]) -> Any:
        return self._encoder.encode(documents)

    def encode_single(self, text: str, is_query: bool = False) -> Any:
        return self._encoder.encode_one(text)


class _SpoiltTable:
    """A LanceDB table whose vectors cannot be read by id as they should."""

    def __init__(self, table: Any, fault: Fault, entry_id: str) -> None:
        self._table = table
        self._fault = fault
        self._entry_id = entry_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def search(self, *args: Any) -> Any:
        return _SpoiltQuery(self._table.search(*args), self._fault, self._entry_id)


class _SpoiltQuery:
    def __init__(self, query: Any, fault: Fault, entry_id: str) -> None:
        self._query = query
        self._fault = fault
        self._entry_id = entry_id

    def __getattr__(self, name: str) -> Any:
        def step(*args: Any, **kwargs: Any) -> Any:
            result = getattr(self._query, name)(*args, **kwargs)
            return result if name == "to_list" else type(self)(result, self._fault, self._entry_id)

        return step

    def to_arrow(self) -> Any:
        """SimpleMem reads lists; only the adapter reads vectors, and by Arrow."""
        rows = self._query.to_arrow().to_pylist()
        for row in rows:
            if row["entry_id"] == self._entry_id or not self._fault.hits_one_memory:
                row["vector"] = self._fault.spoil(row["vector"])
        schema = pa.schema([("entry_id", pa.string()), ("vector", pa.list_(pa.float32()))])
        return pa.Table.from_pylist(
            [
                {**row, "vector": None if row["vector"] is None else list(row["vector"])}
                for row in rows
            ],
            schema,
        )
