"""Coverage and overlap, by hand."""

from __future__ import annotations

from datetime import datetime

import pytest

from mempursuit_eval.datasets import Question
from mempursuit_eval.metrics import Coverage, coverage, overlap
from mempursuit_eval.records import MemoryRecord


def record(name: str, session: int, *evidence: str) -> MemoryRecord:
    return MemoryRecord(name, name, "Ada", session, datetime(2023, 5, 8), evidence)


RECORDS = {
    r.id: r
    for r in (
        record("a", 1, "D1:1"),
        record("b", 1, "D1:2", "D1:3"),
        record("c", 2, "D2:1"),
        record("d", 3),
    )
}


def ask(sessions: set[int], turns: set[str]) -> Question:
    return Question("q", "?", "!", "multi-hop", frozenset(sessions), frozenset(turns))


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (["a"], Coverage(0.5, 0.0, 1 / 3, 0.0)),
        (["b", "a"], Coverage(0.5, 0.0, 2 / 3, 0.0)),
        (["b", "c"], Coverage(1.0, 1.0, 2 / 3, 0.0)),
        (["a", "b", "c", "d"], Coverage(1.0, 1.0, 1.0, 1.0)),
        ([], Coverage(0.0, 0.0, 0.0, 0.0)),
        (["d"], Coverage(0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_coverage(context, expected):
    assert coverage(ask({1, 2}, {"D1:1", "D1:3", "D2:1"}), context, RECORDS) == expected


def test_without_gold_there_is_no_rate():
    assert coverage(ask(set(), set()), ["a"], RECORDS) == Coverage(None, None, None, None)


@pytest.mark.parametrize(
    ("a", "b", "k", "expected"),
    [
        ("abcd", "abxy", 4, 0.5),
        ("abcd", "dcba", 4, 1.0),
        ("ab", "cd", 2, 0.0),
        ("abc", "abc", 10, 0.3),  # the pool held only three
        ("", "", 10, 0.0),
    ],
)
def test_overlap_is_the_shared_part_of_the_budget(a, b, k, expected):
    assert overlap(list(a), list(b), k) == expected
