"""The toy framework's adapter passes the suite: the example to copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from integration_tests.conformance import (
    AdapterConformance,
    CountingEncoder,
    Fault,
    K,
    Memory,
    keys_in,
    toy,
    toy_adapter,
)
from integration_tests.conformance.toy import Row, ToyMemory
from mempursuit_adapters import Pool


class ToyConformance(AdapterConformance):
    framework = "toy"
    adapter = toy_adapter
    toy = toy
    cannot: ClassVar = {"async": "the toy framework has no async search"}

    def build(self, memories: Sequence[Memory], encoder: CountingEncoder, home: Path) -> ToyMemory:
        target: ToyMemory = self.toy.ToyMemory(encoder.encode_one)
        for number, memory in enumerate(memories):
            target.index.rows[number] = (memory.text, memory.vector)
        return target

    def search(self, target: ToyMemory, query: str, k: int) -> list[Row]:
        return target.search(query, limit=k)

    def read(self, result: list[Row]) -> list[str]:
        return [key for row in result for key in keys_in(row["text"])]

    def pool(self, target: ToyMemory, query: str, size: int) -> Pool:
        return self.adapter.pool(target, query, pool_size=size)

    def inject(
        self, target: ToyMemory, fault: Fault, memory: Memory, patch: pytest.MonkeyPatch
    ) -> None:
        index, vectors, nearest = target.index, target.index.vectors, target.index.nearest
        if fault is Fault.WIDE_SEARCH_FAILS:

            def narrow(vector: Any, limit: int) -> list[Row]:
                return nearest(vector, limit) if limit <= K else fault.spoil(vector)

            patch.setattr(index, "nearest", narrow)
            return

        def spoilt(ids: list[int]) -> list[Any]:
            return [
                fault.spoil(v) if index.rows[i][0] == memory.text else v
                for i, v in zip(ids, vectors(ids), strict=True)
            ]

        patch.setattr(index, "vectors", spoilt)

    def other_calls(self, target: ToyMemory) -> Mapping[str, Callable[[], object]]:
        return {
            "summary": lambda: target.summary(self.query),
            "add": lambda: target.add("a new one"),
            "delete": lambda: target.delete(3),
            "index": lambda: target.index.nearest(target.embed(self.query), K),
        }


class TestToy(ToyConformance):
    """The suite, on the toy."""
