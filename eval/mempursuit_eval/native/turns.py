"""A conversation as the writers read it: turns, session by session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from mempursuit_eval.datasets import Conversation
from mempursuit_eval.records import MemoryRecord

T = TypeVar("T")


def sessions(conversation: Conversation) -> list[list[MemoryRecord]]:
    """Return the turns of each session, oldest session first."""
    return [
        list(turns)
        for _, turns in groupby(conversation.memories["turns"], key=lambda turn: turn.session)
    ]


def turns(conversation: Conversation) -> list[MemoryRecord]:
    """Return all turns in order."""
    return list(conversation.memories["turns"])


def said(turn: MemoryRecord) -> str:
    """Return a turn's text without the speaker's name in front."""
    return turn.text.removeprefix(f"{turn.speaker}: ")


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield `items` in pieces of `size`, the last one shorter."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
