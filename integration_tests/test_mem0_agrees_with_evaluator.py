"""A user's Mem0 and the evaluator's arm of the same preset choose the same memories."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mempursuit_adapters import choose
from mempursuit_adapters import mem0 as adapter
from mempursuit_core import preset
from mempursuit_eval.backbones.mem0 import RECORD_ID, Mem0Backbone, Mem0PaperBackbone
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.records import MemoryRecord

PLACES = ["harbour", "library", "climbing hall", "market", "botanical garden", "old mill"]
DEEDS = ["met Ivo at", "sketched", "lost a glove at", "volunteers at", "took the bus to", "avoids"]
RECORDS = [
    MemoryRecord(
        id=f"c/o{n}",
        text=f"{who} {deed} the {place}{' again' if n % 3 else ''}.",
        speaker=who,
        session=1 + n // 10,
        when=datetime(2024, 3, 1 + n % 28),
    )
    for n, (who, deed, place, _) in enumerate(
        (w, d, p, i) for i in range(4) for w in ("Rosa Lind", "Tom") for d in DEEDS for p in PLACES
    )
]
QUESTIONS = [
    "Where did Rosa meet Ivo?",
    "What does Tom do at the library?",
    "Which places do both of them avoid?",
]
BROAD = "Rosa Lind and Tom met at the old mill, the library and the market."
ASK = pytest.mark.parametrize("question", QUESTIONS)
BUDGET = pytest.mark.parametrize("k", [10, 20])
PRESET = pytest.mark.parametrize("name", ["paper", "auto"])


@pytest.fixture(scope="module")
def encoder() -> WordLlamaEncoder:
    return WordLlamaEncoder()


@pytest.fixture(scope="module")
def hybrid(encoder: WordLlamaEncoder, tmp_path_factory: Any) -> Iterator[Mem0Backbone]:
    yield from filled(Mem0Backbone(encoder, tmp_path_factory.mktemp("mem0")))


@pytest.fixture(scope="module")
def paper(encoder: WordLlamaEncoder, tmp_path_factory: Any) -> Iterator[Mem0PaperBackbone]:
    yield from filled(Mem0PaperBackbone(encoder, tmp_path_factory.mktemp("mem0-paper")))


def filled(backbone: Any) -> Iterator[Any]:
    backbone.fill(RECORDS)
    yield backbone
    backbone.close()


def record_ids(found: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row["metadata"][RECORD_ID] for row in found["results"])


@ASK
@BUDGET
@PRESET
def test_attach(question: str, k: int, name: str, hybrid: Mem0Backbone) -> None:
    arm = choose(hybrid.pool(question), k, preset(name))
    with adapter.attach(hybrid.target, preset=name):
        found = hybrid.target.search(question, filters=hybrid.filters, top_k=k, rerank=True)
    assert record_ids(found) == arm.ids
    assert len(arm.ids) == k


@ASK
@BUDGET
@PRESET
def test_search_across(question: str, k: int, name: str, paper: Mem0PaperBackbone) -> None:
    arm = choose(paper.pool(question), k, preset(name))
    found = adapter.search_across(
        paper.target, question, filters=paper.store_filters, top_k=k, preset=name
    )
    assert record_ids(found) == arm.ids
    assert len(arm.ids) == k


def test_the_evaluators_own_order_is_what_a_plain_search_returns(hybrid: Mem0Backbone) -> None:
    for question in QUESTIONS:
        plain = hybrid.target.search(question, filters=hybrid.filters, top_k=10)
        assert record_ids(plain) == tuple(hybrid.pool(question).ids[:10])


def test_each_speaker_has_a_store_of_up_to_30_candidates(paper: Mem0PaperBackbone) -> None:
    assert paper.store_filters == [{"user_id": "Rosa_Lind"}, {"user_id": "Tom"}]
    speakers = {r.id: r.speaker for r in RECORDS}
    pool = paper.pool(BROAD)
    found = [speakers[str(i)] for i in pool.ids]
    assert found.count("Rosa Lind") == found.count("Tom") == 30


def test_the_hybrid_pool_has_200_candidates(hybrid: Mem0Backbone) -> None:
    assert len(hybrid.pool(BROAD)) == 200
    # Mem0 itself drops what is less similar than its default threshold, 0.1.
    assert len(hybrid.pool(QUESTIONS[0])) < 200
    assert hybrid.facts()["signals"]["semantic"] is True


def test_a_store_reopens_with_the_same_pools(encoder: WordLlamaEncoder, tmp_path: Path) -> None:
    for kind in (Mem0Backbone, Mem0PaperBackbone):
        backbone = kind(encoder, tmp_path / kind.name)
        backbone.fill(RECORDS[:90])
        before = [list(backbone.pool(q).ids) for q in QUESTIONS]
        backbone.close()
        again = kind(encoder, tmp_path / kind.name)
        assert [list(again.pool(q).ids) for q in QUESTIONS] == before
        again.close()
