"""What a store is filled with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class MemoryRecord:
    """One memory of one conversation.

    Attributes:
        id: unique within the data set, e.g. "conv-26/o17"; safe in any store.
        text: what is stored and embedded.
        speaker: whom the memory is about (observations) or who said it (turns).
        session: number of the session it comes from, 1-based; None where a framework's own writer
            does not let it be known: such a memory answers questions and covers no session.
        when: start of that session, or of the last one it can come from.
        evidence: ids of the turns it rests on, e.g. ("D3:12",).
    """

    id: str
    text: str
    speaker: str
    session: int | None
    when: datetime
    evidence: tuple[str, ...] = ()

    def as_row(self) -> dict[str, Any]:
        """Return it as a line of memories.jsonl."""
        return {
            "id": self.id,
            "session": self.session,
            "speaker": self.speaker,
            "when": self.when.isoformat(),
            "evidence": self.evidence,
            "text": self.text,
        }

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> MemoryRecord:
        """Read what :meth:`as_row` returned.

        Raises:
            KeyError, TypeError: it is no such line.
        """
        return cls(
            row["id"],
            row["text"],
            row["speaker"],
            row["session"],
            datetime.fromisoformat(row["when"]),
            tuple(row["evidence"]),
        )
