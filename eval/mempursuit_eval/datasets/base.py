"""Conversations, their memories and their questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mempursuit_eval.records import MemoryRecord


class DataError(ValueError):
    """A data file that cannot be read; the message says where and what to do."""


@dataclass(frozen=True)
class Question:
    """One question with its gold evidence.

    Attributes:
        id: unique within the data set, e.g. "conv-26/q12".
        text: the question.
        answer: the gold answer as text.
        category: e.g. "multi-hop".
        gold_sessions: numbers of the sessions its evidence lies in.
        gold_turns: ids of the evidence turns that exist.
    """

    id: str
    text: str
    answer: str
    category: str
    gold_sessions: frozenset[int]
    gold_turns: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """One conversation: memories by kind ("observations", "turns") and questions."""

    id: str
    speakers: tuple[str, str]
    memories: Mapping[str, tuple[MemoryRecord, ...]]
    questions: tuple[Question, ...]


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
