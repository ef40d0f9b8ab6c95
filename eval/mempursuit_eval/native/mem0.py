"""Mem0's `Memory.add`, two messages at a time, as in the evaluation script Mem0 published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

import mem0.memory.main as mem0_main
from mem0.configs.prompts import ADDITIVE_EXTRACTION_PROMPT, PAST_MESSAGE_TRUNCATION_LIMIT
from mem0.llms.openai import OpenAILLM

from mempursuit_adapters.patching import Patches
from mempursuit_eval.backbones import Backbone
from mempursuit_eval.backbones.mem0 import RECORD_ID, Mem0Backbone
from mempursuit_eval.datasets import Conversation
from mempursuit_eval.judged.tokens import CHARACTERS_PER_TOKEN, estimate_tokens
from mempursuit_eval.native.base import Endpoint, PlannedCall, Writer, Written
from mempursuit_eval.native.turns import batches, sessions
from mempursuit_eval.records import MemoryRecord

BATCH = 2  # messages an `add`

# For the estimate alone: what Mem0 puts into a prompt besides the new messages.
_LAST_MESSAGES = 10
_SIMILAR_MEMORIES = 10
_MEMORY_TOKENS = 40  # one memory in JSON
_HEADINGS_TOKENS = 60
_MEMORIES_A_TURN = 1.2


class Mem0Writer(Writer):
    """One store a conversation: the first speaker is the user, the other the assistant."""

    framework: ClassVar[str] = "mem0"

    def write(self, backbone: Backbone, conversation: Conversation, endpoint: Endpoint) -> Written:
        """Add every session in turn; see `Writer.write`."""
        assert isinstance(backbone, Mem0Backbone)
        backbone.target.llm = OpenAILLM(
            {"model": endpoint.model, "api_key": endpoint.key, "openai_base_url": endpoint.url}
        )
        backbone.open_users(list(self._owners(conversation)))
        records: list[MemoryRecord] = []
        for owner in self._owners(conversation):
            for session in sessions(conversation):
                with _dated(session[0].when):
                    for batch in batches(session, BATCH):
                        records += self._add(backbone, conversation, owner, batch, len(records))
        return Written(records)

    def plan(self, conversation: Conversation) -> list[PlannedCall]:
        """Return one call an `add`; see `Writer.plan`."""
        return [
            call for owner in self._owners(conversation) for call in self._plan(conversation, owner)
        ]

    def facts(self) -> dict[str, Any]:
        """Say how messages are handed over."""
        return {
            "writer": f"Memory.add, {BATCH} messages at a time, session by session",
            "roles": self._roles(),
            "instructions": "memories name the speakers",
            "observation_date": "the session's (Memory.add alone would take today's)",
            "sessions_known": "all memories",
            "evidence": f"the turns of the {BATCH} added together that are by whom it is about",
        }

    def _owners(self, conversation: Conversation) -> Sequence[str]:
        """Return whose messages are the user's, once a store."""
        return conversation.speakers[:1]

    def _roles(self) -> str:
        return "the first speaker is the user, the other the assistant"

    def _instructions(self, conversation: Conversation, owner: str) -> str:
        a, b = conversation.speakers
        return (
            f"The messages are a conversation between {a} and {b}; each begins with the name of "
            f"who says it. Name {a} or {b} in every memory, never write 'user' or 'assistant'."
        )

    def _add(
        self,
        backbone: Mem0Backbone,
        conversation: Conversation,
        owner: str,
        batch: Sequence[MemoryRecord],
        n: int,
    ) -> Iterator[MemoryRecord]:
        first = batch[0]
        added = backbone.target.add(
            [{"role": _role(turn, owner), "content": turn.text} for turn in batch],
            user_id=backbone.user(owner),
            metadata={"session": first.session, "created_at": first.when.isoformat()},
            prompt=self._instructions(conversation, owner),
        )
        store = backbone.target.vector_store
        for row in added["results"]:
            about = store.get(row["id"]).payload.get("attributed_to")
            turns = [t for t in batch if _role(t, owner) == about] or batch
            record = MemoryRecord(
                f"{conversation.id}/{self.framework}-{n:04d}",
                row["memory"],
                " and ".join(dict.fromkeys(t.speaker for t in turns)),
                first.session,
                first.when,
                tuple(e for t in turns for e in t.evidence),
            )
            store.update(row["id"], payload={RECORD_ID: record.id})
            n += 1
            yield record

    def _plan(self, conversation: Conversation, owner: str) -> Iterator[PlannedCall]:
        fixed = estimate_tokens(ADDITIVE_EXTRACTION_PROMPT)
        fixed += estimate_tokens(self._instructions(conversation, owner)) + _HEADINGS_TOKENS
        shown: list[int] = []  # of the messages before, in characters as Mem0 shows them
        memories = 0.0
        for session in sessions(conversation):
            for batch in batches(session, BATCH):
                new = sum(estimate_tokens(turn.text) for turn in batch)
                before = sum(shown[-_LAST_MESSAGES:]) // CHARACTERS_PER_TOKEN
                similar = int(min(memories, _SIMILAR_MEMORIES)) * _MEMORY_TOKENS
                reply = round(_MEMORIES_A_TURN * len(batch) * _MEMORY_TOKENS)
                yield PlannedCall(fixed + new + before + similar, reply)
                shown += [min(len(t.text), PAST_MESSAGE_TRUNCATION_LIMIT) for t in batch]
                memories += _MEMORIES_A_TURN * len(batch)


class Mem0PaperWriter(Mem0Writer):
    """As in Mem0's paper: the conversation is written once for either speaker, roles mirrored."""

    framework: ClassVar[str] = "mem0-paper"

    def _owners(self, conversation: Conversation) -> Sequence[str]:
        return conversation.speakers

    def _roles(self) -> str:
        return "written twice: in a speaker's own store that speaker is the user"

    def _instructions(self, conversation: Conversation, owner: str) -> str:
        return (
            f"{super()._instructions(conversation, owner)} Take memories only from what {owner} "
            "says; the other's messages are there to understand it."
        )


def _role(turn: MemoryRecord, owner: str) -> str:
    return "user" if turn.speaker == owner else "assistant"


@contextmanager
def _dated(when: datetime) -> Iterator[None]:
    """Let Mem0 resolve relative dates against `when`.

    Its prompt takes the date, but the open-source `Memory.add` has no argument for it and leaves
    it at today, which is years after the conversation (and would change every prompt overnight).
    """
    name, day = "generate_additive_extraction_prompt", when.date().isoformat()
    patches = Patches()
    patches.attribute(
        mem0_main, name, partial(getattr(mem0_main, name), current_date=day, timestamp=day)
    )
    try:
        yield
    finally:
        patches.undo()
