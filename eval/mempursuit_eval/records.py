"""What a store is filled with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class MemoryRecord:
    """One memory of one conversation.

    Attributes:
        id: unique within the data set, e.g. "conv-26/o17"; safe in any store.
        text: what is stored and embedded.
        speaker: whom the memory is about (observations) or who said it (turns).
        session: number of the session it comes from, 1-based.
        when: start of that session.
        evidence: ids of the turns it rests on, e.g. ("D3:12",).
    """

    id: str
    text: str
    speaker: str
    session: int
    when: datetime
    evidence: tuple[str, ...] = ()
