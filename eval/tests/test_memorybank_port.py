"""MemoryBank's read path: what the seeds grow into, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mempursuit_eval.backbones.memorybank import MemoryBankBackbone
from mempursuit_eval.ports.memorybank import (
    FAISS,
    Document,
    LocalMemoryRetrieval,
    neighbours,
    separate,
)
from mempursuit_eval.records import MemoryRecord


@pytest.mark.parametrize(
    ("seed", "lengths", "sources", "expected"),
    [
        # Right before left, distance by distance, while the seed's 50 and theirs stay within 200.
        pytest.param(4, [50] * 9, "aaaaaaaaa", {5, 3, 6}, id="nearest first"),
        pytest.param(4, [50] * 9, "aaaabbbbb", {5, 6, 7}, id="own date only"),
        pytest.param(4, [200] + [1] * 8, "aaaaaaaaa", {1, 2, 3, 5, 6, 7}, id="label 0 and 2·seed"),
        pytest.param(0, [10] * 5, "aaaaa", set(), id="the first looks nowhere"),
        pytest.param(1, [10] * 5, "aaaaa", set(), id="nor does the second"),
        pytest.param(2, [10] * 5, "aaaaa", {1, 3}, id="the third looks one far"),
        # 5 does not fit, so 3 is not looked at; distance 2 is.
        pytest.param(
            4, [50, 50, 50, 50, 50, 151, 50, 50, 50], "aaaaaaaaa", {6, 2, 7}, id="blocked"
        ),
        # A long text of another date blocks its distance just the same.
        pytest.param(
            4, [50, 50, 50, 50, 50, 900, 50, 50, 50], "aaaaabaaa", {6, 2, 7}, id="other date"
        ),
        # 3 does not fit; the shorter 2 behind it does.
        pytest.param(
            4, [50, 50, 60, 160, 50, 70, 10, 90, 90], "aaaaaaaaa", {5, 6, 2}, id="skipped"
        ),
        pytest.param(4, [10] * 4 + [201] + [10] * 4, "aaaaaaaaa", set(), id="seed over budget"),
        pytest.param(4, [10] * 4 + [190] + [10] * 4, "aaaaaaaaa", {5}, id="exactly at budget"),
        pytest.param(7, [50] * 8, "aaaaaaaa", {6, 5, 4}, id="at the end"),
    ],
)
def test_neighbours(seed: int, lengths: list[int], sources: str, expected: set[int]) -> None:
    assert neighbours(seed, lengths, list(sources), 200) == expected


def test_neighbours_are_those_of_the_plain_loop() -> None:
    """The shortcuts change nothing: the loop as MemoryBank runs it, over every seed."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 25))
        lengths = rng.integers(1, 120, size=n).tolist()
        sources = [str(s) for s in np.sort(rng.integers(0, 4, size=n))]
        if rng.random() < 0.3:  # a date that comes back later
            sources = [str(s) for s in rng.permutation(sources)]
        for seed in range(n):
            size, taken = lengths[seed], set()
            for distance in range(1, max(seed, 0 - seed)):
                for label in (seed + distance, seed - distance):
                    if 0 <= label < n:
                        if size + lengths[label] > 200:
                            break
                        if sources[label] == sources[seed]:
                            size += lengths[label]
                            taken.add(label)
            assert neighbours(seed, lengths, sources, 200) == taken


@pytest.mark.parametrize(
    ("labels", "runs"),
    [
        ([], []),
        ([3], [[3]]),
        ([1, 2, 3], [[1, 2, 3]]),
        ([0, 2, 3, 7, 9, 10], [[0], [2, 3], [7], [9, 10]]),
    ],
)
def test_separate(labels: list[int], runs: list[list[int]]) -> None:
    assert separate(labels) == runs


# Label -> position on a line, text, date; the dates are stored newest first.
LINE = [
    (0.0, "zero " * 10, "2023-05-09"),
    (1.0, "one " * 10, "2023-05-09"),
    (2.0, "two " * 10, "2023-05-09"),
    (3.0, "three " * 10, "2023-05-02"),
    (4.0, "four " * 10, "2023-05-02"),
    (50.0, "five " * 50, "2023-05-02"),
    (60.0, "six ", "2023-05-01"),
]
TEXT = {f"id{i}": text for i, (_, text, _) in enumerate(LINE)}


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the places of stored texts; a question says its place in figures."""
    at = {text: x for x, text, _ in LINE}
    return np.array([[at[text] if text in at else float(text)] for text in texts], np.float32)


@pytest.fixture
def store() -> FAISS:
    documents = {f"id{i}": Document(text, {"source": d}) for i, (_, text, d) in enumerate(LINE)}
    return FAISS.from_documents(documents, embed, dimension=1)


def test_chunks_come_in_label_order_with_the_last_score(store: FAISS) -> None:
    # Nearest to 59: six (1), five (81). Five is over budget, six has no one in its date: one run.
    found = store.similarity_search_with_score("59", k=2)
    assert [(d.page_content, d.metadata["source"], s) for d, s in found] == [
        (TEXT["id5"] + TEXT["id6"], "2023-05-02", 81.0)
    ]
    # Nearest to 0.4: zero and one, which look nowhere.
    found = store.similarity_search_with_score("0.4", k=2)
    assert [d.page_content for d, _ in found] == [TEXT["id0"] + TEXT["id1"]]
    assert [s for _, s in found] == [pytest.approx(0.36)]


def test_a_run_may_cross_dates(store: FAISS) -> None:
    # Seed two (40 characters) takes in one (40); seed three (60) takes in four (50).
    assert store.runs([2, 3]) == [[1, 2, 3, 4]]
    assert store.source_of([1, 2, 3, 4]) == "2023-05-09"
    assert store.runs([3]) == [[3, 4]]


def test_search_memory_shows_one_text_a_date_oldest_first(store: FAISS) -> None:
    # Nearest to 3.1: three, which takes in four; next are four and two, which takes in one.
    reader = LocalMemoryRetrieval(top_k=1)
    assert reader.search_memory("3.1", store) == (
        [(TEXT["id3"] + TEXT["id4"]).strip()],
        "2023-05-02",
    )
    # Nearest to -1000: zero, one, two, three, four, five; all one run under the newest date.
    reader = LocalMemoryRetrieval(top_k=6)
    texts, dates = reader.search_memory("-1000", store)
    assert texts == ["".join(TEXT[f"id{i}"] for i in range(6)).strip()]
    assert dates == "2023-05-09"
    # Nearest to 61: six, which is alone in its date.
    reader = LocalMemoryRetrieval(top_k=1)
    texts, dates = reader.search_memory("61", store)
    assert (texts, dates) == (["six"], "2023-05-01")


def test_dates_are_sorted_and_chunks_of_one_date_joined_by_a_newline() -> None:
    at = {"a": 0.0, "b": 50.0, "c": 1.0, "d": 60.0, "e": 2.0}
    dates = "22211"
    documents = {t: Document(t, {"source": s}) for t, s in zip(at, dates, strict=True)}
    store = FAISS.from_documents(
        documents, lambda ts: np.array([[at.get(t, 0.0)] for t in ts], dtype=np.float32), 1
    )
    store.chunk_size = 0  # no neighbours
    assert store.runs([4, 0, 2]) == [[0], [2], [4]]
    assert LocalMemoryRetrieval(top_k=3).search_memory("?", store) == (["e", "a\nc"], "1, 2")


def test_a_search_changes_no_stored_text(store: FAISS) -> None:
    for _ in range(2):
        first = LocalMemoryRetrieval(top_k=3).search_memory("2.5", store)
    assert first == LocalMemoryRetrieval(top_k=3).search_memory("2.5", store)
    assert {i: store.docstore.search(i).page_content for i in TEXT} == TEXT


def test_an_empty_store_finds_nothing() -> None:
    store = FAISS.from_documents({}, lambda ts: np.zeros((len(ts), 2), dtype=np.float32), 2)
    assert LocalMemoryRetrieval().search_memory("?", store) == ([], "")


def test_a_saved_store_reads_the_same(store: FAISS, tmp_path: Path) -> None:
    store.save_local(tmp_path)
    again = FAISS.load_local(tmp_path, store.embedding_function)
    assert again.similarity_search_with_score("3.1", 3) == store.similarity_search_with_score(
        "3.1", 3
    )


class LineEncoder:
    """Places texts such as "memory 3.5" on a line."""

    name, dimension = "line", 1

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[float(text.split()[-1])] for text in texts], np.float32)


def test_the_backbone_stores_sessions_oldest_first(tmp_path: Path) -> None:
    places = {
        "c/o0": (2, 9.0),
        "c/o1": (1, 4.0),
        "c/o2": (2, 2.0),
        "c/o3": (1, 3.0),
        "c/o4": (1, 8.0),
    }
    records = [
        MemoryRecord(i, f"memory {x}", "Ada", session, datetime(2024, 5, session, 9, 30))
        for i, (session, x) in places.items()
    ]
    MemoryBankBackbone(LineEncoder(), tmp_path).fill(records)
    backbone = MemoryBankBackbone(LineEncoder(), tmp_path)
    labels = backbone.target.index_to_docstore_id
    assert list(labels.values()) == ["c/o1", "c/o3", "c/o4", "c/o0", "c/o2"]

    pool = backbone.pool("where is 8.6")
    assert pool.ids == ["c/o0", "c/o4", "c/o1", "c/o3", "c/o2"]
    assert pool.texts[0] == "memory 9.0"
    # c/o0 (label 3) takes in label 4 of its session; labels 2 and 1 are another session's.
    assert backbone.context(pool, [0]) == ["c/o0", "c/o2"]
    # c/o3 (label 1) looks nowhere.
    assert backbone.context(pool, [0, 3]) == ["c/o3", "c/o0", "c/o2"]
    assert backbone.expands
    assert backbone.kind == "port"
