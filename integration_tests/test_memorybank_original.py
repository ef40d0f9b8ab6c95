"""MemoryBank's own code: the adapter on it, and the evaluator's port beside it.

Its own data (`eval_data/en`) is read as its demo reads it. A budget of 200 characters takes in no
neighbour there (texts of 360 characters are usual), so larger ones are tried too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integration_tests.conformance.faults import Fault, warnings_of
from integration_tests.conformance.snapshot import Snapshot
from integration_tests.memorybank_faiss import SpoiltIndex
from integration_tests.memorybank_stores import (
    CountingEmbeddings,
    has_old_langchain,
    original,
    source_folder,
)
from mempursuit_adapters.memorybank import attach, install, pool, uninstall
from mempursuit_core import PRESETS, select
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.ports import memorybank as port

USERS = ("Emily", "Jason", "Leo")
BUDGETS = (200, 600, 1200)
K = 10


@dataclass
class Bank:
    """One user's memories in MemoryBank's store on disk."""

    retrieval: Any
    path: str
    questions: list[str]

    def load(self) -> Any:
        """Return the store as a new process sees it: a search lengthens the texts it returns."""
        return self.retrieval.load_memory_index(self.path)

    def ported(self) -> port.FAISS:
        store = self.load()
        found = {i: store.docstore.search(i) for i in store.index_to_docstore_id.values()}
        documents = {
            i: port.Document(d.page_content, {"source": d.metadata["source"]})
            for i, d in found.items()
        }
        embed, size = self.retrieval.embeddings.embed_query, self.retrieval.chunk_size
        return port.FAISS(embed, store.index, documents, size)

    def search(self, question: str, store: Any = None) -> tuple[list[str], str]:
        texts, dates = self.retrieval.search_memory(question, store or self.load())
        return texts, dates


@pytest.fixture(scope="module")
def folder() -> Path:
    return source_folder()


@pytest.fixture(scope="module")
def encoder(folder: Path) -> WordLlamaEncoder:
    return WordLlamaEncoder()


@pytest.fixture
def module(folder: Path) -> Iterator[Any]:
    with original(folder) as module:
        yield module


@pytest.fixture
def banks(module: Any, folder: Path, encoder: WordLlamaEncoder, tmp_path: Path) -> list[Bank]:
    data = folder / "eval_data" / "en"
    file = data / "memory_bank_en.json"
    users = {name.strip(): name for name in json.loads(file.read_text(encoding="utf-8"))}
    asked: dict[str, list[str]] = {}
    for line in (data / "probing_questions_en.jsonl").read_text(encoding="utf-8").splitlines():
        asked |= json.loads(line) if line.strip() else {}
    made = []
    for name in USERS:
        retrieval = module.LocalMemoryRetrieval()
        retrieval.language, retrieval.top_k = "en", K
        retrieval.embeddings = CountingEmbeddings(encoder.encode)
        path, _ = retrieval.init_memory_vector_store(str(file), str(tmp_path / name), users[name])
        made.append(Bank(retrieval, path, asked[name]))
    return made


@pytest.mark.parametrize("chunk_size", BUDGETS)
@pytest.mark.parametrize("k", [2, 3, 10, 20])
def test_port_and_original_give_the_same_chunks(banks: list[Bank], k: int, chunk_size: int) -> None:
    for bank in banks:
        bank.retrieval.chunk_size, bank.retrieval.top_k = chunk_size, k
        ported, reader = bank.ported(), port.LocalMemoryRetrieval(k)
        for question in bank.questions:
            assert reader.search_memory(question, ported) == bank.search(question)
            chunks = bank.load().similarity_search_with_score(question, k=k)
            assert [
                (chunk.page_content, chunk.metadata["source"], score)
                for chunk, score in ported.similarity_search_with_score(question, k=k)
            ] == [(d.page_content, d.metadata["source"], float(score)) for d, score in chunks]


def test_the_original_lengthens_its_stored_texts_and_the_port_does_not(banks: list[Bank]) -> None:
    bank = banks[0]
    store, ported = bank.load(), bank.ported()
    before = sum(len(d.page_content) for d in store.docstore._dict.values())
    for question in bank.questions:
        bank.search(question, store)
        port.LocalMemoryRetrieval(K).search_memory(question, ported)
    assert sum(len(d.page_content) for d in store.docstore._dict.values()) > before
    assert sum(len(d.page_content) for d in ported.docstore._dict.values()) == before


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("chunk_size", BUDGETS)
def test_the_original_expands_the_picked_seeds(
    banks: list[Bank], chunk_size: int, preset: str
) -> None:
    dials, differ = PRESETS[preset], 0
    for bank in banks:
        bank.retrieval.chunk_size = chunk_size
        ported = bank.ported()
        embeddings = bank.retrieval.embeddings
        native = {question: bank.search(question) for question in bank.questions}
        with attach(bank.retrieval, preset=preset) as handle:
            for question in bank.questions:
                calls = embeddings.query_calls
                texts = bank.search(question)
                assert embeddings.query_calls == calls + 1
                found = pool(ported, question)
                seeds = select(
                    found.query,
                    found.vectors,
                    K,
                    discount=dials.discount,
                    near_duplicate=dials.near_duplicate,
                ).indices
                assert handle.last is not None
                assert list(handle.last.ids) == [found.ids[i] for i in seeds]
                assert texts == as_the_port_shows(ported, [int(found.ids[i]) for i in seeds])
                differ += texts != native[question]
        assert handle.stats().fallbacks == {}
        assert native == {question: bank.search(question) for question in bank.questions}
    assert differ > 0


def as_the_port_shows(store: port.FAISS, seeds: list[int]) -> tuple[list[str], str]:
    """Return what the port's reader makes of these seeds."""

    class Seeds:
        def search(self, x: Any, k: int) -> tuple[Any, Any]:
            return np.zeros((1, len(seeds))), np.array([seeds])

    documents = {i: store.docstore.search(i) for i in store.index_to_docstore_id.values()}
    fixed = port.FAISS(store.embedding_function, Seeds(), documents, store.chunk_size)
    return port.LocalMemoryRetrieval(K).search_memory("", fixed)


def test_k_replaces_memorybanks_top_k(banks: list[Bank]) -> None:
    bank = banks[0]
    bank.retrieval.top_k = 2  # as its demo sets it
    with attach(bank.retrieval, k=7) as handle:
        bank.search(bank.questions[0])
        assert handle.last is not None
        assert len(handle.last.ids) == 7
    with attach(bank.retrieval) as handle:
        bank.search(bank.questions[0])
        assert handle.last is not None
        assert len(handle.last.ids) == 2


def test_every_way_to_attach_reads_alike(module: Any, banks: list[Bank]) -> None:
    bank, question = banks[0], banks[0].questions[1]
    native = bank.search(question)
    with attach(bank.retrieval):
        expected = bank.search(question)
    assert expected != native

    store = bank.load()
    with attach(store):
        assert bank.search(question, store) == expected

    # MemoryBank writes its search over the class at every load: before and after install().
    for covered in (bank.load(), None):
        handle = install(module.FAISS)
        try:
            assert bank.search(question, covered) == expected
            assert handle.stats().searches == 1
        finally:
            uninstall()
        assert bank.search(question) == native


def test_a_store_attached_itself_keeps_its_own_dials(banks: list[Bank]) -> None:
    bank, question = banks[0], banks[0].questions[1]
    store = bank.load()
    with attach(store, k=4) as own, attach(bank.retrieval, k=7) as outer:
        bank.search(question, store)
        assert own.last is not None
        assert len(own.last.ids) == 4
        assert outer.stats().searches == 0
        bank.search(question)
        assert outer.last is not None
        assert len(outer.last.ids) == 7


def test_detach_restores_the_very_same_methods(module: Any, banks: list[Bank]) -> None:
    bank = banks[0]
    store = bank.load()
    before = Snapshot(store, bank.retrieval, module.FAISS)
    for target in (store, bank.retrieval):
        with attach(target), pytest.raises(RuntimeError, match="already"):
            attach(target)
        assert before.changes() == []
    install(module.FAISS)
    with pytest.raises(RuntimeError, match="already"):
        install(module.FAISS)
    with pytest.raises(RuntimeError, match="uninstall"):
        attach(store)
    uninstall()
    assert before.changes() == []


@pytest.mark.parametrize("fault", [Fault.VECTORS_UNREADABLE, Fault.WIDE_SEARCH_FAILS])
def test_trouble_of_ours_leaves_memorybanks_own_answer(banks: list[Bank], fault: Fault) -> None:
    bank = banks[0]
    native = {question: bank.search(question) for question in bank.questions}
    with attach(bank.retrieval) as handle, warnings_of("memorybank") as heard:
        for question in bank.questions:
            store = bank.load()
            store.index = SpoiltIndex(store.index, fault, label=0, narrow=K)
            assert bank.search(question, store) == native[question]
    assert len(heard) == 1
    assert list(handle.stats().fallbacks.values()) == [len(native)]


def test_a_user_without_memories_fails_as_before(banks: list[Bank]) -> None:
    bank = banks[0]

    def outcome() -> type[Exception]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is without us
            bank.retrieval.search_memory("anything", None)
        return caught.type

    native = outcome()
    with attach(bank.retrieval):
        assert outcome() is native


@pytest.mark.skipif(not has_old_langchain(), reason="its text splitter needs langchain 0.0.146")
def test_the_forgetting_reader_strengthens_what_was_picked(
    folder: Path, encoder: WordLlamaEncoder, tmp_path: Path
) -> None:
    """The second copy of the reader: every dialogue is its own date, and recall is written back."""
    source = folder / "eval_data" / "en" / "memory_bank_en.json"
    question = "What painters did you recommend to me?"

    def recalled(attached: bool) -> tuple[tuple[list[str], str], set[str], tuple[Any, ...]]:
        random.seed(0)
        file = tmp_path / f"bank_{attached}.json"
        file.write_text(json.dumps({"Emily": json.loads(source.read_text("utf-8"))["Emily"]}))
        retrieval = module.LocalMemoryRetrieval()
        retrieval.language, retrieval.top_k = "en", 6
        retrieval.embeddings = CountingEmbeddings(encoder.encode)
        path, _ = retrieval.init_memory_vector_store(
            str(file), str(tmp_path / f"vs_{attached}"), "Emily", "2023-04-27"
        )
        store = retrieval.load_memory_index(path)

        def search() -> tuple[list[str], str]:
            texts, dates = retrieval.search_memory(question, store, cur_date="2023-05-08")
            return texts, dates

        ids: tuple[Any, ...] = ()
        if attached:
            with attach(retrieval) as handle:
                found = search()
            assert handle.last is not None
            ids = handle.last.ids
        else:
            found = search()
        history = json.loads(file.read_text("utf-8"))["Emily"]["history"]
        strong = {
            m["memory_id"] for day in history.values() for m in day if m["memory_strength"] > 1
        }
        return found, strong, ids

    with original(folder, "forget_memory") as module:
        native, native_strong, _ = recalled(attached=False)
        found, strong, ids = recalled(attached=True)
    assert found != native
    assert strong != native_strong
    assert len(ids) == 6
    assert strong == set(found[1].split(", "))
