"""Conversations, their memories and their questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mempursuit_eval.records import MemoryRecord


class DataError(ValueError):
    """A data file that cannot be read; the message says where and what to do."""


@dataclass(frozen=True)
class Question:
    """One question with its gold evidence, and how an answer to it is judged.

    Attributes:
        id: unique within the data set, e.g. "conv-26/q12".
        text: the question.
        answer: the gold answer as text.
        category: e.g. "multi-hop".
        gold_sessions: numbers of the sessions its evidence lies in.
        gold_turns: ids of the evidence turns that exist.
        asked: when it is asked, where the benchmark says so.
        guidance: what the judge must know about questions of this kind, in a sentence or two.
        rubric: criteria an answer is scored on one by one; empty: it is judged against `answer`.
    """

    id: str
    text: str
    answer: str
    category: str
    gold_sessions: frozenset[int]
    gold_turns: frozenset[str]
    asked: datetime | None = None
    guidance: str = ""
    rubric: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversation:
    """One conversation: memories by kind ("observations", "turns") and questions."""

    id: str
    speakers: tuple[str, str]
    memories: Mapping[str, tuple[MemoryRecord, ...]]
    questions: tuple[Question, ...]

    @property
    def last_session(self) -> datetime | None:
        """Start of its last session that holds a memory of any kind."""
        return max((r.when for kind in self.memories.values() for r in kind), default=None)


@dataclass(frozen=True)
class Dataset:
    """A benchmark file, read.

    Attributes:
        name: how it is called in tables.
        sha256: of the file.
        categories: names in the order tables show them.
        conversations: in file order.
    """

    name: str
    sha256: str
    categories: tuple[str, ...]
    conversations: tuple[Conversation, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions, in file order."""
        return tuple(q for c in self.conversations for q in c.questions)
