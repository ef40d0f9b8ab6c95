"""The memories a report needs, each once, by index."""

from __future__ import annotations

from typing import Any

from mempursuit_eval.datasets import Question
from mempursuit_eval.saved import SavedRun


class MemoryTable:
    """Numbers memories in the order they are first needed."""

    def __init__(self, run: SavedRun) -> None:
        self._run = run
        self._index: dict[str, int] = {}
        self._by_turn: dict[tuple[str, str], list[str]] = {}
        # A record's id starts with its conversation's: turn ids repeat between conversations.
        for record in run.records.values():
            for turn in record.evidence:
                key = (record.id.rpartition("/")[0], turn)
                self._by_turn.setdefault(key, []).append(record.id)
        self.rows: list[list[Any]] = []

    def __getitem__(self, memory: str) -> int:
        if memory not in self._index:
            r = self._run.records[memory]
            self._index[memory] = len(self.rows)
            self.rows.append(
                [r.text, r.session, r.when.isoformat(timespec="minutes"), r.speaker, r.evidence]
            )
        return self._index[memory]

    def gold(self, conversation: str, question: Question) -> list[int]:
        """Return the memories that rest on the question's gold turns."""
        found = {
            m for turn in question.gold_turns for m in self._by_turn.get((conversation, turn), ())
        }
        return sorted(self[m] for m in found)
