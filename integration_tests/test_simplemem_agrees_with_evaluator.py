"""SimpleMem's adapter, called as a user calls it, returns what the evaluator's arm chooses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from mempursuit_adapters import choose
from mempursuit_adapters.simplemem import attach
from mempursuit_core import PRESETS
from mempursuit_eval.backbones.simplemem import SimpleMemBackbone
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.records import MemoryRecord

QUESTIONS = (
    "What has Ines planted in her garden, and when?",
    "Who's teaching the pottery class?",
    "Which instruments does Tomas play?",
)
_FACTS = (
    "{who} planted {n} tomatoes behind the shed",
    "{who}'s garden has {n} new rose bushes",
    "{who} took a pottery class with {n} friends",
    "{who} teaches pottery to {n} beginners on Tuesdays",
    "{who} practised the cello for {n} hours",
    "{who} bought a second-hand piano for {n} euros",
)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleMemBackbone]:
    records = [
        MemoryRecord(
            id=f"conv-1/o{i}",
            text=_FACTS[i % len(_FACTS)].format(who=who, n=i),
            speaker=who,
            session=1 + i // 10,
            when=datetime(2024, 3, 1 + i // 10),
        )
        for i, who in enumerate(["Ines", "Tomas"] * 30)
    ]
    backbone = SimpleMemBackbone(WordLlamaEncoder(), tmp_path_factory.mktemp("store"))
    backbone.fill(records)
    yield backbone
    backbone.close()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("k", [10, 20])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_adapter_returns_the_evaluators_ids(
    backbone: SimpleMemBackbone, preset: str, k: int, question: str
) -> None:
    pool = backbone.pool(question)
    expected = choose(pool, k, PRESETS[preset]).ids

    with attach(backbone.target, k=k, preset=preset) as handle:
        entries = backbone.target.retrieve(question)

    assert [entry.entry_id for entry in entries] == list(expected)
    assert len(expected) == k
    assert list(expected) != list(pool.ids[:k])  # pursuit did something here
    assert handle.stats().fallbacks == {}


def test_the_pool_has_what_the_semantic_and_the_keyword_search_find(
    backbone: SimpleMemBackbone,
) -> None:
    question = "Which instruments does Tomas play?"
    retriever = backbone.target
    semantic = [e.entry_id for e in retriever.vector_store.semantic_search(question, top_k=25)]
    keyword = [e.entry_id for e in retriever.vector_store.keyword_search([question], top_k=5)]

    assert len(semantic) == 25
    assert len(keyword) == 5
    assert list(backbone.pool(question).ids) == list(dict.fromkeys(semantic + keyword))


def test_a_keyword_only_match_enters_the_pool(backbone: SimpleMemBackbone) -> None:
    """BM25 stems: "practising" finds "practised", however far away its vector is."""
    keyword = backbone.target.vector_store.keyword_search(["practising"], top_k=5)

    assert len(keyword) == 5
    assert all("practised" in entry.lossless_restatement for entry in keyword)


def test_a_reopened_store_gives_the_same_pool(
    backbone: SimpleMemBackbone, capsys: pytest.CaptureFixture[str]
) -> None:
    again = SimpleMemBackbone(backbone.encoder, backbone.folder)

    for question in QUESTIONS:
        assert list(again.pool(question).ids) == list(backbone.pool(question).ids)
    assert capsys.readouterr().out == ""


def test_a_failed_search_is_not_an_empty_pool(
    backbone: SimpleMemBackbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr(backbone.target.vector_store.embedding_model, "encode_single", fail)

    with pytest.raises(RuntimeError, match="disk on fire"):
        backbone.pool(QUESTIONS[0])
