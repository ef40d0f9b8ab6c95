"""LightMem's adapter, called as a user calls it, returns what the evaluator's arm chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from types import ModuleType

import pytest

from integration_tests.lightmem_stores import KINDS, source_module
from mempursuit_adapters import choose, lightmem
from mempursuit_core import preset as dials_of
from mempursuit_eval.backbones import lightmem as backbones
from mempursuit_eval.backbones.lightmem import LightMemBackbone
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.records import MemoryRecord

QUESTION = "What did Maya do with her sister on the trip to the lake?"
_WHO = ("Maya", "Maya's sister", "Jon", "a neighbour")
_WHAT = (
    "swam in the lake",
    "went swimming at the lake",
    "cooked pasta at the cabin",
    "lost a car key",
    "adopted a grey cat",
    "started a pottery course",
    "planned a trip to the lake",
    "took photographs of the sunset",
)
_WHERE = ("last summer", "on Saturday", "after work")


@pytest.fixture(scope="module")
def encoder() -> WordLlamaEncoder:
    return WordLlamaEncoder()


@pytest.fixture(scope="module")
def records() -> list[MemoryRecord]:
    facts = [f"{who} {what} {where}" for who in _WHO for what in _WHAT for where in _WHERE]
    start = datetime(2023, 5, 8, 13, 56)
    return [
        MemoryRecord(f"c/o{i}", fact, "Maya", i // 10 + 1, start + timedelta(days=i // 10))
        for i, fact in enumerate(facts)
    ]


@pytest.fixture(scope="module", params=KINDS)
def backbone(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    encoder: WordLlamaEncoder,
    records: list[MemoryRecord],
) -> Iterator[LightMemBackbone]:
    package: ModuleType | None = source_module() if request.param == "source" else None
    folder = tmp_path_factory.mktemp("lightmem")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbones, "_package", package)
        with closing(LightMemBackbone(encoder, folder)) as writer:
            writer.fill(records)
        with closing(LightMemBackbone(encoder, folder)) as backbone:  # as a continued run opens it
            yield backbone


@pytest.mark.parametrize("preset", ["paper", "auto"])
@pytest.mark.parametrize("k", [10, 20])
def test_retrieve_returns_the_arms_memories(
    backbone: LightMemBackbone, records: list[MemoryRecord], preset: str, k: int
) -> None:
    by_id = {r.id: r for r in records}
    pool = backbone.pool(QUESTION)
    assert len(pool) == 60
    arm = choose(pool, k, dials_of(preset))
    expected = [by_id[str(i)] for i in arm.ids]
    with lightmem.attach(backbone.target, preset=preset):
        lines = backbone.target.retrieve(QUESTION, limit=k)
    assert lines == [
        f"{r.when.isoformat(timespec='milliseconds')} {r.when:%a} {r.text}" for r in expected
    ]
    assert arm.positions != tuple(range(k))  # else LightMem's own order would pass, too


def test_what_the_manifest_says(backbone: LightMemBackbone) -> None:
    versions = backbone.versions()
    real = type(backbone.target).__module__ == "lightmem.memory.lightmem"
    assert ("lightmem" in versions) == real
    assert versions["qdrant-client"]


def test_kind_and_reason_match_what_could_be_imported() -> None:
    assert LightMemBackbone.kind == ("port" if backbones._why_port else "package")
