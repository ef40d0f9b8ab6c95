"""How much of the gold evidence reaches the context."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mempursuit_eval.datasets import Question
from mempursuit_eval.records import MemoryRecord

METRICS = ("session_recall", "complete_coverage", "turn_recall", "turn_complete")


@dataclass(frozen=True)
class Coverage:
    """One question's evidence in one context; rates in 0–1, None where there is no gold."""

    session_recall: float | None
    complete_coverage: float | None
    turn_recall: float | None
    turn_complete: float | None


def coverage(
    question: Question, context: Iterable[str], records: Mapping[str, MemoryRecord]
) -> Coverage:
    """Score the memories `context` (record ids) against the question's gold evidence.

    Session recall is the share of gold sessions among the memories' sessions, turn recall the
    share of gold turns among their evidence; "complete" is 1 if nothing is missing.
    """
    reached = [records[i] for i in context]
    sessions = {r.session for r in reached}
    turns = {turn for r in reached for turn in r.evidence}
    session_recall = _recall(question.gold_sessions, sessions)
    turn_recall = _recall(question.gold_turns, turns)
    return Coverage(session_recall, _complete(session_recall), turn_recall, _complete(turn_recall))


def overlap(a: Collection[str], b: Collection[str], k: int) -> float:
    """Return |a ∩ b| / k, the share of the budget two selections have in common.

    A pool smaller than `k` leaves places empty, which nobody shares.
    """
    return len(set(a) & set(b)) / k


def _recall(gold: Collection[object], found: Collection[object]) -> float | None:
    return len(set(gold) & set(found)) / len(gold) if gold else None


def _complete(recall: float | None) -> float | None:
    return None if recall is None else float(recall == 1.0)
