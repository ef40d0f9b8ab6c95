"""The conformance suite on LightMem: its memory and its experiment's entry retriever.

Each on the port or a stand-in, and on LightMem's own source where it is given.
"""

from __future__ import annotations

import logging
import sys
import types
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from qdrant_client import QdrantClient

from integration_tests.conformance import (
    AdapterConformance,
    CountingEncoder,
    Fault,
    K,
    Memory,
    keys_in,
)
from integration_tests.conformance.data import DIMENSION
from integration_tests.lightmem_stores import load_retrievers, open_store, source_module
from mempursuit_adapters import Handle, Pool, lightmem
from mempursuit_eval.ports import lightmem as port


class _Embedder:
    """The suite's encoder behind LightMem's interface."""

    def __init__(self, encoder: CountingEncoder) -> None:
        self._encoder = encoder

    def embed(self, text: str) -> list[float]:
        vector: list[float] = self._encoder.encode_one(text).tolist()
        return vector


class _Client:
    """A Qdrant client that hands over what a test makes of its answers."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def _id(key: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, key))


def _payload(memory: Memory) -> dict[str, Any]:
    return {
        "time_stamp": memory.at.isoformat(timespec="milliseconds"),
        "float_time_stamp": memory.at.timestamp(),
        "weekday": f"{memory.at:%a}",
        "memory": memory.text,
        "consolidated": False,
    }


class LightMemoryConformance(AdapterConformance):
    framework = "lightmem"
    adapter = lightmem
    cannot: ClassVar = {"async": "LightMem has no async interface"}

    def open(self, embedder: Any, home: Path) -> Any:
        """Return an empty memory."""
        raise NotImplementedError

    def build(self, memories: Sequence[Memory], encoder: CountingEncoder, home: Path) -> Any:
        target = self.open(_Embedder(encoder), home)
        if memories:
            target.embedding_retriever.insert(
                vectors=[m.vector.tolist() for m in memories],
                payloads=[_payload(m) for m in memories],
                ids=[_id(m.key) for m in memories],
            )
        return target

    def close(self, target: Any) -> None:
        target.embedding_retriever.client.close()

    def search(self, target: Any, query: str, k: int) -> list[str]:
        lines: list[str] = target.retrieve(query, limit=k)
        return lines

    def read(self, result: list[str]) -> list[str]:
        return [key for line in result for key in keys_in(line)]

    def pool(self, target: Any, query: str, size: int) -> Pool:
        return lightmem.pool(target, query, pool_size=size)

    def inject(self, target: Any, fault: Fault, memory: Memory, patch: pytest.MonkeyPatch) -> None:
        client = target.embedding_retriever.client
        broken = _Client(client)

        def query_points(*args: Any, limit: int, **kwargs: Any) -> Any:
            if fault is Fault.WIDE_SEARCH_FAILS and limit > K:
                fault.spoil(None)
            points = client.query_points(*args, limit=limit, **kwargs).points
            return types.SimpleNamespace(
                points=[p.model_copy(update={"vector": in_answer(p)}) for p in points]
            )

        def in_answer(point: Any) -> Any:
            if not fault.hits_one_memory:
                return None  # so that the vectors must be read by id
            return fault.spoil(point.vector) if point.id == _id(memory.key) else point.vector

        def retrieve(*args: Any, **kwargs: Any) -> list[Any]:
            points = client.retrieve(*args, **kwargs)
            return [types.SimpleNamespace(id=p.id, vector=fault.spoil(p.vector)) for p in points]

        broken.query_points = query_points  # type: ignore[attr-defined]
        broken.retrieve = retrieve  # type: ignore[attr-defined]
        patch.setattr(target.embedding_retriever, "client", broken)

    def other_calls(self, target: Any) -> Mapping[str, Callable[[], object]]:
        searcher, question = target.embedding_retriever, self.world.question_vectors[self.query]

        def neighbours() -> list[Any]:
            return [hit["id"] for hit in searcher.search(question.tolist(), limit=K)]

        return {"searcher": neighbours, "get_all": lambda: len(searcher.get_all())}


class TestPort(LightMemoryConformance):
    """The evaluator's port over the real Qdrant."""

    def open(self, embedder: Any, home: Path) -> Any:
        # In memory for speed; test_lightmem.py reads Qdrant's files.
        client = QdrantClient(":memory:")
        return port.LightMemory(embedder, port.Qdrant(client, "lightmem", DIMENSION))

    def install(self, k: int, **options: Any) -> Handle:
        searcher = "lightmem.factory.retriever.embeddingretriever.qdrant"
        for name in ("lightmem.memory.lightmem", searcher):
            parts = name.split(".")
            for i in range(1, len(parts)):
                parent = ".".join(parts[:i])
                self._patch.setitem(sys.modules, parent, types.ModuleType(parent))
            self._patch.setitem(sys.modules, name, port)
        return super().install(k, **options)


class TestSource(LightMemoryConformance):
    """LightMem's own source."""

    def open(self, embedder: Any, home: Path) -> Any:
        return open_store("source", embedder, home, DIMENSION)

    def other_calls(self, target: Any) -> Mapping[str, Callable[[], object]]:
        utils, searcher = source_module("lightmem.memory.utils"), target.embedding_retriever
        target.config.index_strategy = "embedding"  # else its writer stores nothing
        first = self.world.memories[0]

        def update_queues() -> dict[Any, Any]:
            target.construct_update_queue_all_entries(top_k=8, keep_top_n=4, max_workers=2)
            entries = searcher.get_all()
            return {e["id"]: [c["id"] for c in e["payload"]["update_queue"]] for e in entries}

        def seeds_of_a_summary() -> list[Any]:
            entries = utils.retrieve_supplementary_entries(
                [{"id": _id(first.key), "payload": _payload(first)}],
                searcher,
                target.text_embedder,
                top_k=K,
                logger=logging.getLogger("test"),
            )
            return [e["id"] for e in entries]

        def add() -> object:
            entry = utils.MemoryEntry(id=_id("new"), memory="a new one", float_time_stamp=1.0)
            target.offline_update([entry])
            return searcher.exists(_id("new"))

        def update() -> object:
            searcher.update(_id("new"), payload={"memory": "another", "float_time_stamp": 1.0})
            return searcher.get(_id("new")).payload["memory"]

        def delete() -> object:
            searcher.delete(_id("new"))
            return searcher.exists(_id("new"))

        return {
            **super().other_calls(target),
            "update queues": update_queues,
            "summary": seeds_of_a_summary,
            "add": add,
            "update": update,
            "delete": delete,
        }


class EntryStandIn:
    """Scores entries in Python, as the retriever of LightMem's LoCoMo experiment does."""

    def __init__(self, embedder: Any) -> None:
        self.embedder = embedder

    def retrieve(self, entries: list[Any], query_text: str, limit: int = 20) -> list[Any]:
        query = np.asarray(self.embedder.embed(query_text))
        results = []
        for entry in entries:
            vector = np.asarray(entry["vector"])
            score = float(query @ vector / np.linalg.norm(query) / np.linalg.norm(vector))
            results.append({"id": str(entry["id"]), "score": score, "payload": entry["payload"]})
        return sorted(results, key=lambda r: -r["score"])[:limit]


class EntryConformance(AdapterConformance):
    """The retriever of LightMem's LoCoMo experiment, over a list of entries."""

    framework = "lightmem"
    adapter = lightmem
    cannot: ClassVar = {
        "async": "it has no async interface",
        "install": "its class is a script's own, not a package's; attach() covers an instance",
        **dict.fromkeys(
            (fault.value for fault in Fault),
            "it ranks by the very vectors in the list: spoilt ones change its own order as well",
        ),
    }

    def retriever(self, embedder: Any) -> Any:
        return EntryStandIn(embedder)

    def build(self, memories: Sequence[Memory], encoder: CountingEncoder, home: Path) -> Any:
        entries = [
            {"id": _id(m.key), "payload": _payload(m), "vector": m.vector.tolist()}
            for m in memories
        ]
        return types.SimpleNamespace(retriever=self.retriever(_Embedder(encoder)), entries=entries)

    def attach(self, target: Any, k: int, **options: Any) -> Handle:
        return lightmem.attach(target.retriever, **options)

    def search(self, target: Any, query: str, k: int) -> list[Any]:
        results: list[Any] = target.retriever.retrieve(target.entries, query, limit=k)
        return results

    def read(self, result: list[Any]) -> list[str]:
        return [key for entry in result for key in keys_in(entry["payload"]["memory"])]

    def pool(self, target: Any, query: str, size: int) -> Pool:
        return lightmem.entries_pool(target.retriever, target.entries, query, pool_size=size)

    def inject(self, target: Any, fault: Fault, memory: Memory, patch: pytest.MonkeyPatch) -> None:
        raise NotImplementedError

    def other_calls(self, target: Any) -> Mapping[str, Callable[[], object]]:
        summaries = [
            {**entry, "payload": {"summary": entry["payload"]["memory"]}}
            for entry in target.entries
        ]
        return {"summaries": lambda: target.retriever.retrieve(summaries, self.query, limit=K)}


class TestEntriesStandIn(EntryConformance):
    """A stand-in for the experiment's retriever."""


class TestEntriesSource(EntryConformance):
    """The experiment's own retriever."""

    def retriever(self, embedder: Any) -> Any:
        return load_retrievers(self._patch).VectorRetriever(embedder)
