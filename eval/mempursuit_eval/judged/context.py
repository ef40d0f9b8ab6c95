"""What an answerer and a judge are shown of a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from mempursuit_eval.datasets import Conversation, Question
from mempursuit_eval.records import MemoryRecord

NOTHING = "(nothing was retrieved)"


def human_date(when: datetime) -> str:
    """Return e.g. "Monday, 8 May 2023"; weekdays let a reader resolve "last Friday"."""
    return f"{when:%A}, {when.day} {when:%B} {when.year}"


class ContextOrder:
    """Puts memories oldest first; those of one date keep the store's order.

    Arms that chose the same set get the same context, whatever order they chose it in.
    """

    def __init__(self, records: Mapping[str, MemoryRecord]) -> None:
        oldest_first = sorted(records.values(), key=lambda r: r.when)  # stable
        self._place = {r.id: n for n, r in enumerate(oldest_first)}

    def __call__(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the distinct ids in context order."""
        return tuple(sorted(set(ids), key=self._place.__getitem__))


def show_memories(ids: Iterable[str], records: Mapping[str, MemoryRecord]) -> str:
    """Return the memories as an answerer reads them: a date and the text, no scores, no ranks."""
    shown = [f"[{human_date(records[i].when)}] {records[i].text.strip()}" for i in ids]
    return "\n".join(shown) or NOTHING


def reference_date(question: Question, conversation: Conversation) -> str:
    """Return the date that stands for "now".

    It is when the benchmark asks the question, or else the conversation's last session. (The
    paper's prompt builder says "2023" for every question, which is the year of most of LoCoMo.)
    """
    when = question.asked or conversation.last_session
    return human_date(when) if when is not None else "an unknown date"


def gold_text(question: Question) -> str:
    """Return the gold answer as the judge sees it; open-domain ones are cut at the first `;`."""
    if question.category == "open-domain":
        return question.answer.split(";")[0].strip()
    return question.answer
