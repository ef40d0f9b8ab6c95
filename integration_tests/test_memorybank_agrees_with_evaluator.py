"""MemoryBank's adapter, called as a user calls it, reads what the evaluator's arm chooses."""

from __future__ import annotations

import pytest

from mempursuit_adapters import choose
from mempursuit_adapters.memorybank import attach
from mempursuit_core import PRESETS
from mempursuit_eval.backbones.memorybank import MemoryBankBackbone
from mempursuit_eval.datasets import Conversation, bundled_path, load_locomo
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.ports.memorybank import LocalMemoryRetrieval


@pytest.fixture(scope="module")
def conversation() -> Conversation:
    return load_locomo(bundled_path()).conversations[0]


@pytest.fixture(scope="module")
def backbone(
    conversation: Conversation, tmp_path_factory: pytest.TempPathFactory
) -> MemoryBankBackbone:
    folder = tmp_path_factory.mktemp("store")
    encoder = WordLlamaEncoder()
    MemoryBankBackbone(encoder, folder).fill(conversation.memories["observations"])
    return MemoryBankBackbone(encoder, folder)  # the evaluator reads a store it opens anew


@pytest.mark.parametrize("k", [10, 20])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_adapter_reads_the_evaluators_ids(
    conversation: Conversation, backbone: MemoryBankBackbone, preset: str, k: int
) -> None:
    store, retrieval = backbone.target, LocalMemoryRetrieval(top_k=k)
    text_of = {i: d.page_content for i, d in store.docstore._dict.items()}
    differ = expanded = 0
    for question in conversation.questions:
        pool = backbone.pool(question.text)
        choice = choose(pool, k, PRESETS[preset])
        context = backbone.context(pool, choice.positions)

        with attach(retrieval, preset=preset) as handle:
            dates, _ = retrieval.search_memory(question.text, store)

        assert handle.last is not None
        assert [store.index_to_docstore_id[i] for i in handle.last.ids] == list(choice.ids)
        # search_memory joins the texts of a chunk by nothing and the chunks of a date by a newline.
        assert "".join(dates).replace("\n", "") == "".join(text_of[i] for i in context)
        assert handle.stats().fallbacks == {}
        differ += list(choice.ids) != list(pool.ids[:k])
        expanded += len(context) > k
    assert differ > len(conversation.questions) // 2  # pursuit did something here
    assert expanded > 0


@pytest.mark.parametrize("k", [10, 20])
def test_the_plain_framework_reads_the_order_arm(
    conversation: Conversation, backbone: MemoryBankBackbone, k: int
) -> None:
    store, retrieval = backbone.target, LocalMemoryRetrieval(top_k=k)
    text_of = {i: d.page_content for i, d in store.docstore._dict.items()}
    for question in conversation.questions:
        pool = backbone.pool(question.text)
        dates, _ = retrieval.search_memory(question.text, store)
        context = backbone.context(pool, range(k))
        assert "".join(dates).replace("\n", "") == "".join(text_of[i] for i in context)


def test_store_and_retrieval_attach_alike(
    conversation: Conversation, backbone: MemoryBankBackbone
) -> None:
    question, retrieval = conversation.questions[0].text, LocalMemoryRetrieval(top_k=10)
    with attach(retrieval):
        by_retrieval = retrieval.search_memory(question, backbone.target)
    with attach(backbone.target):
        by_store = retrieval.search_memory(question, backbone.target)
    assert by_retrieval == by_store
    assert retrieval.search_memory(question, backbone.target) != by_store


def test_pool_is_the_200_nearest(conversation: Conversation, backbone: MemoryBankBackbone) -> None:
    records = conversation.memories["observations"]
    pool = backbone.pool(conversation.questions[0].text)
    assert len(pool) == min(200, len(records))
    assert set(pool.ids) <= {record.id for record in records}
    assert list(pool.items) == sorted(pool.items)
    assert list(pool.texts) == [backbone.target.docstore.search(i).page_content for i in pool.ids]


def test_sessions_are_read_oldest_first(
    conversation: Conversation, backbone: MemoryBankBackbone
) -> None:
    records = {r.id: r for r in conversation.memories["observations"]}
    pool = backbone.pool(conversation.questions[0].text)
    context = backbone.context(pool, range(10))
    assert set(map(str, pool.ids[:10])) <= set(context)
    assert len(context) == len(set(context))
    when = [records[i].when for i in context]
    assert when == sorted(when)
