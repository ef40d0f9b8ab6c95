"""Searches at the same time on one memory never see each other's query, pool or choice."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mem0 import AsyncMemory, Memory

from integration_tests.mem0_kit import DIMENSION, USER, Embedder, facts, make, pursued, texts_of
from mempursuit_adapters import mem0 as adapter

FACTS = facts()
RNG = np.random.default_rng(7)
QUESTIONS = {
    f"question {n}": (1 + 0.8 * RNG.standard_normal(DIMENSION)).tolist() for n in range(64)
}
EXPECTED = {q: pursued(FACTS, 8, 60, query=v) for q, v in QUESTIONS.items()}


class Slow(Embedder):
    """Takes a moment, so that searches overlap; not the same one for every question."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        time.sleep(0.001 * (hash(text) % 7))
        return super().embed(text, memory_action)


def slow(memory: Any) -> Any:
    memory.embedding_model = Slow({**FACTS, **QUESTIONS})
    return memory


def test_the_questions_have_different_answers() -> None:
    assert len({tuple(texts) for texts in EXPECTED.values()}) > 60


def test_64_tasks_on_one_async_memory(tmp_path: Path) -> None:
    memory = slow(make(tmp_path, FACTS, AsyncMemory))

    async def ask(question: str, handle: Any) -> tuple[list[str], list[str]]:
        found = await memory.search(question, filters=USER, top_k=8, rerank=True)
        await asyncio.sleep(0)
        chosen = [handle.last.texts[i] for i in handle.last.positions]
        return texts_of(found["results"]), chosen

    async def all_at_once() -> list[tuple[list[str], list[str]]]:
        with adapter.attach(memory, pool_size=60) as handle:
            answers = await asyncio.gather(*(ask(q, handle) for q in QUESTIONS))
        assert handle.stats().searches == 64
        return answers

    answers = asyncio.run(all_at_once())
    assert [rows for rows, _ in answers] == list(EXPECTED.values())
    assert [mine for _, mine in answers] == list(EXPECTED.values())
    assert len(memory.embedding_model.asked) == 64
    assert "embed" not in vars(memory.embedding_model)


def test_16_threads_on_one_memory(tmp_path: Path) -> None:
    memory = slow(make(tmp_path, FACTS))
    together = threading.Barrier(16)

    with adapter.attach(memory, pool_size=60) as handle:

        def ask(question: str) -> tuple[list[str], list[str]]:
            together.wait(timeout=30)
            found = memory.search(question, filters=USER, top_k=8, rerank=True)
            chosen = [handle.last.texts[i] for i in handle.last.positions]
            return texts_of(found["results"]), chosen

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(ask, QUESTIONS))
    assert [rows for rows, _ in answers] == list(EXPECTED.values())
    assert [mine for _, mine in answers] == list(EXPECTED.values())
    assert handle.stats().searches == 64
    assert "embed" not in vars(memory.embedding_model)


def test_plain_and_reranked_searches_do_not_mix(tmp_path: Path) -> None:
    memory = slow(make(tmp_path, FACTS))
    questions = list(QUESTIONS)[:16]

    def ask(question: str, rerank: bool) -> list[str]:
        found = memory.search(question, filters=USER, top_k=8, rerank=rerank)
        return texts_of(found["results"])

    plain = [ask(q, False) for q in questions]
    with adapter.attach(memory, pool_size=60), ThreadPoolExecutor(8) as pool:
        jobs = [(q, n % 2 == 0) for n, q in enumerate(questions)]
        answers = list(pool.map(lambda job: ask(*job), jobs))
    for n, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        assert answer == (EXPECTED[question] if n % 2 == 0 else plain[n])


def test_detaching_while_searches_run_leaves_each_of_them_whole(tmp_path: Path) -> None:
    memory = slow(make(tmp_path, FACTS))
    plain = {
        q: texts_of(memory.search(q, filters=USER, top_k=8)["results"]) for q in list(QUESTIONS)[:8]
    }
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            with adapter.attach(memory, pool_size=60):
                jobs = {
                    q: pool.submit(memory.search, q, filters=USER, top_k=8, rerank=True)
                    for q in plain
                }
                time.sleep(0.004)
            for question, job in jobs.items():
                rows = texts_of(job.result()["results"])
                assert rows in (EXPECTED[question], plain[question])
    assert not {"search", "_search_vector_store", "embed"} & {
        *vars(memory),
        *vars(memory.embedding_model),
    }


def test_two_memories_share_one_embedder(tmp_path: Path) -> None:
    first = slow(make(tmp_path / "1", FACTS))
    second = make(tmp_path / "2", FACTS)
    second.embedding_model = first.embedding_model
    with (
        adapter.attach(first, pool_size=60),
        adapter.attach(second, pool_size=60),
        ThreadPoolExecutor(8) as pool,
    ):
        jobs = [
            (q, pool.submit(m.search, q, filters=USER, top_k=8, rerank=True))
            for q in list(QUESTIONS)[:16]
            for m in (first, second)
        ]
        for question, job in jobs:
            assert texts_of(job.result()["results"]) == EXPECTED[question]


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
def test_search_across_at_the_same_time(kind: type[Any], tmp_path: Path) -> None:
    memory = slow(make(tmp_path, FACTS, kind))
    filters = [USER, {"user_id": "nobody"}]
    expected = [pursued(FACTS, 8, 30, query=v) for v in QUESTIONS.values()][:16]
    questions = list(QUESTIONS)[:16]
    if kind is AsyncMemory:

        async def all_at_once() -> list[Any]:
            calls = (
                adapter.search_across_async(memory, q, filters=filters, top_k=8) for q in questions
            )
            return await asyncio.gather(*calls)

        found = asyncio.run(all_at_once())
    else:
        with ThreadPoolExecutor(8) as pool:
            found = list(
                pool.map(
                    lambda q: adapter.search_across(memory, q, filters=filters, top_k=8), questions
                )
            )
    assert [texts_of(f["results"]) for f in found] == expected
    assert len(memory.embedding_model.asked) == 16
