"""Mem0's adapter passes the suite on `Memory` and `AsyncMemory` over an on-disk Qdrant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from mem0 import AsyncMemory, Memory
from mem0.configs.base import MemoryConfig

from integration_tests import conformance
from integration_tests.conformance import AdapterConformance, CountingEncoder, Fault, K, keys_in
from integration_tests.conformance.data import DIMENSION
from integration_tests.mem0_kit import USER, config, identifier, write
from mempursuit_adapters import Pool, mem0

OVERFETCH = 60  # Mem0 asks its store for max(4·top_k, 60), so for 60 where K results are asked for


class Embedder:
    """The suite's encoder behind Mem0's interface."""

    def __init__(self, encoder: CountingEncoder) -> None:
        self.encoder = encoder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self.encoder.encode_one(text).tolist()
        return vector

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        rows: list[list[float]] = self.encoder.encode(texts).tolist()
        return rows


class FaultyClient:
    """A Qdrant client that ranks as ever and hands out what a fault leaves of the vectors."""

    def __init__(self, client: Any, fault: Fault, point: str) -> None:
        self._ranking, self._fault, self._point = client, fault, point

    def query_points(self, *args: Any, **kwargs: Any) -> Any:
        if self._fault is Fault.WIDE_SEARCH_FAILS and kwargs["limit"] != OVERFETCH:
            self._fault.spoil(None)
        return self._ranking.query_points(*args, **kwargs)

    def retrieve(self, *args: Any, **kwargs: Any) -> list[Any]:
        records = self._ranking.retrieve(*args, **kwargs)
        if self._fault is Fault.WIDE_SEARCH_FAILS:
            return list(records)
        return [
            SimpleNamespace(id=record.id, vector=self._fault.spoil(_dense(record.vector)))
            if record.id == self._point
            else record
            for record in records
        ]


def _dense(vector: Any) -> Any:
    return vector[""] if isinstance(vector, dict) else vector


class Mem0Conformance(AdapterConformance):
    framework = "mem0"
    adapter = mem0
    kind: ClassVar[type[Any]]

    def build(
        self, memories: Sequence[conformance.Memory], encoder: CountingEncoder, home: Path
    ) -> Any:
        settings = config(home)
        settings["vector_store"]["config"]["embedding_model_dims"] = DIMENSION
        memory = self.kind(MemoryConfig(**settings))
        memory.embedding_model = Embedder(encoder)
        write(memory, {m.text: m.vector.tolist() for m in memories})
        return memory

    def close(self, target: Any) -> None:
        target.vector_store.client.close()

    def search(self, target: Any, query: str, k: int) -> Any:
        return self.now(target.search(query, filters=USER, top_k=k, rerank=True))

    def read(self, result: Any) -> list[str]:
        return [key for row in result["results"] for key in keys_in(row["memory"])]

    def rows(self, result: Any) -> list[Any]:
        # Qdrant's local mode rounds a score by how many it computes at once.
        rounded = [{**row, "score": round(row["score"], 4)} for row in result["results"]]
        return [{**row, "rerank_score": None} for row in rounded]

    def result_type(self, result: Any) -> object:
        return type(result), list(result), [type(row) for row in result["results"]]

    def inject(
        self, target: Any, fault: Fault, memory: conformance.Memory, patch: pytest.MonkeyPatch
    ) -> None:
        store = target.vector_store
        broken = FaultyClient(store.client, fault, identifier(USER["user_id"] + memory.text))
        patch.setattr(store, "client", broken)

    def other_calls(self, target: Any) -> Mapping[str, Callable[[], object]]:
        memory = self.world.memories[0]
        row = identifier(USER["user_id"] + memory.text)

        def search(**arguments: Any) -> object:
            return self.now(target.search(self.query, filters=USER, top_k=K, **arguments))

        def update() -> object:
            return self.now(target.update(row, f"{memory.text}, still")), get()["memory"]

        def get() -> Any:
            return self.now(target.get(row))

        def add() -> object:
            added = self.now(target.add("a new one", user_id="ann", infer=False))
            return [(new["memory"], new["event"]) for new in added["results"]]

        def all_texts() -> list[str]:
            rows = self.now(target.get_all(filters=USER, top_k=100))["results"]
            return sorted(row["memory"] for row in rows)

        return {
            "search without rerank": search,
            "search with explain": lambda: search(explain=True),
            "get": get,
            "update": update,
            "history": lambda: len(self.now(target.history(row))),
            "add": add,
            "get_all": all_texts,
            "delete": lambda: self.now(target.delete(row)),
            "get_all after": all_texts,
            "delete_all": lambda: self.now(target.delete_all(user_id="ann")),
            "get_all at last": all_texts,
        }

    def now(self, answer: Any) -> Any:
        """Return what a call of either kind of memory gives."""
        return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer


class TestMemory(Mem0Conformance):
    """`mem0.Memory`."""

    kind = Memory
    cannot: ClassVar = {"async": "Memory has no async search; AsyncMemory is below"}

    def pool(self, target: Any, query: str, size: int) -> Pool:
        return mem0.pool(target, query, filters=USER, pool_size=size)


class TestAsyncMemory(Mem0Conformance):
    """`mem0.AsyncMemory`."""

    kind = AsyncMemory
    cannot: ClassVar = {
        "threads": "an AsyncMemory lives in one event loop; concurrent tasks are checked instead"
    }

    def pool(self, target: Any, query: str, size: int) -> Pool:
        # `mem0.pool` reads a Memory; both kinds keep and search the store in the same way.
        twin = Memory.__new__(Memory)
        vars(twin).update(vars(target))
        for replaced in ("search", "_search_vector_store"):
            vars(twin).pop(replaced, None)
        return mem0.pool(twin, query, filters=USER, pool_size=size)

    async def asearch(self, target: Any, query: str, k: int) -> Any:
        return await target.search(query, filters=USER, top_k=k, rerank=True)
