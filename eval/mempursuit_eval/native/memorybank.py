"""MemoryBank's store: every turn, and a model's summary of each date (our port's write side)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from openai import OpenAI

from mempursuit_eval.backbones import Backbone
from mempursuit_eval.datasets import Conversation
from mempursuit_eval.judged.context import human_date
from mempursuit_eval.judged.tokens import estimate_tokens
from mempursuit_eval.native.base import Endpoint, PlannedCall, Writer, Written
from mempursuit_eval.native.turns import sessions
from mempursuit_eval.records import MemoryRecord

# MemoryBank's own.
MAX_TOKENS = 400
TEMPERATURE = 0.7

_INSTRUCTION = (
    "Sum up the conversation below in a few sentences: what it is about and every important "
    "fact, by the names of those concerned. Several events may be summed up one by one. "
    "Answer with the summary alone."
)
_REPLY_TOKENS = 150  # for the estimate alone


class MemoryBankWriter(Writer):
    """Turns as they are, and after each session's turns its summary, under the same date."""

    framework: ClassVar[str] = "memorybank"

    def write(self, backbone: Backbone, conversation: Conversation, endpoint: Endpoint) -> Written:
        """Summarise every session and store all; see `Writer.write`."""
        client = OpenAI(api_key=endpoint.key, base_url=endpoint.url, max_retries=0, timeout=None)

        def summarise(session: Sequence[MemoryRecord]) -> str:
            done = client.chat.completions.create(
                model=endpoint.model,
                messages=[{"role": "user", "content": _prompt(session)}],
                temperature=TEMPERATURE,
                max_tokens=MAX_TOKENS,
            )
            return (done.choices[0].message.content or "").strip()

        talks = sessions(conversation)
        with client, ThreadPoolExecutor(endpoint.concurrency) as pool:
            summaries = list(pool.map(summarise, talks))
        records: list[MemoryRecord] = []
        for session, summary in zip(talks, summaries, strict=True):
            records += session
            if summary:
                records.append(_summary(conversation, session[0], summary))
        backbone.fill(records)
        return Written(records, {"empty_summaries": sum(not text for text in summaries)})

    def plan(self, conversation: Conversation) -> list[PlannedCall]:
        """Return one call a session; see `Writer.plan`."""
        return [
            PlannedCall(estimate_tokens(_prompt(session)), _REPLY_TOKENS)
            for session in sessions(conversation)
        ]

    def facts(self) -> dict[str, Any]:
        """Say what is stored and what is left out."""
        return {
            "writer": "port: one summary a date, in our own words for the prompt",
            "stored": "every turn, without a date header, and one summary a date",
            "left_out": "personality analyses and the overall summaries, which no search reads",
            "sessions_known": "all memories",
            "evidence": "a turn rests on itself; a summary on its whole session, so on no turn",
        }


def _prompt(session: Sequence[MemoryRecord]) -> str:
    talk = "\n".join(turn.text for turn in session)
    return f"{_INSTRUCTION}\n\nConversation on {human_date(session[0].when)}:\n{talk}"


def _summary(conversation: Conversation, first: MemoryRecord, text: str) -> MemoryRecord:
    return MemoryRecord(
        f"{conversation.id}/memorybank-s{first.session}",
        f"Summary of the conversation: {text}",
        " and ".join(conversation.speakers),
        first.session,
        first.when,
    )
