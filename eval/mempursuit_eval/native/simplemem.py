"""SimpleMem's own MemoryBuilder: windows of dialogue, each turned into entries by one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar

import simplemem.core.memory_builder as memory_builder
import simplemem.database.vector_store as vector_store
import simplemem.utils.llm_client as llm_client
from simplemem.config import get_config
from simplemem.models.memory_entry import Dialogue, MemoryEntry

from mempursuit_eval.backbones import Backbone
from mempursuit_eval.datasets import Conversation
from mempursuit_eval.judged.tokens import estimate_tokens
from mempursuit_eval.native.base import Endpoint, PlannedCall, Writer, Written
from mempursuit_eval.native.surroundings import silenced
from mempursuit_eval.native.turns import batches, said, turns
from mempursuit_eval.records import MemoryRecord

# For the estimate alone; an entry is JSON with keywords, persons, entities and topic.
_REPLY_TOKENS_A_TURN = 80
_SYSTEM_TOKENS = 40


class SimpleMemWriter(Writer):
    """All turns at once, in windows of SimpleMem's own size, in parallel as it does by default."""

    framework: ClassVar[str] = "simplemem"

    def write(self, backbone: Backbone, conversation: Conversation, endpoint: Endpoint) -> Written:
        """Build the entries and store them; see `Writer.write`."""
        said_by_id = dict(enumerate(turns(conversation), start=1))
        with silenced(memory_builder, llm_client, vector_store):
            builder = _Builder(conversation, said_by_id, backbone.target.vector_store, endpoint)
            builder.add_dialogues(
                [
                    Dialogue(
                        dialogue_id=n,
                        speaker=turn.speaker,
                        content=said(turn),
                        timestamp=turn.when.isoformat(timespec="seconds"),
                    )
                    for n, turn in said_by_id.items()
                ]
            )
            builder.process_remaining()
        return Written(
            sorted(builder.records.values(), key=lambda record: record.id),
            {"windows_without_an_entry": builder.empty_windows},
        )

    def plan(self, conversation: Conversation) -> list[PlannedCall]:
        """Return one call a window; see `Writer.plan`."""
        prompt: str = memory_builder.MemoryBuilder._build_extraction_prompt(None, "", [], "")
        fixed = estimate_tokens(prompt) + _SYSTEM_TOKENS
        stamp = estimate_tokens("[2023-05-08T13:56:00] ")
        return [
            PlannedCall(
                fixed + sum(stamp + estimate_tokens(turn.text) for turn in window),
                len(window) * _REPLY_TOKENS_A_TURN,
            )
            for window in batches(turns(conversation), get_config().window_size)
        ]

    def facts(self) -> dict[str, Any]:
        """Say how dialogue is handed over."""
        return {
            "writer": f"MemoryBuilder.add_dialogues, windows of {get_config().window_size} turns",
            "dates": "every turn carries its session's, in ISO 8601; an entry of unknown session "
            "is shown with its own time, or else with that of the entry before it",
            "sessions_known": "entries of a window within one session, or with the exact time of "
            "one of its sessions",
            "evidence": "not known: an entry rests on its whole window",
        }


class _Builder(memory_builder.MemoryBuilder):  # type: ignore[misc]
    """The builder, keeping which window every entry came from; ids follow from window and place."""

    def __init__(
        self,
        conversation: Conversation,
        said_by_id: dict[int, MemoryRecord],
        store: Any,
        endpoint: Endpoint,
    ) -> None:
        client = llm_client.LLMClient(
            endpoint.key, endpoint.model, endpoint.url, enable_thinking=False, use_streaming=False
        )
        super().__init__(client, _InOrder(store), max_parallel_workers=endpoint.concurrency)
        self.records: dict[str, MemoryRecord] = {}
        self.empty_windows = 0  # also where no reply could be read: SimpleMem goes on then
        self._conversation = conversation
        self._said = said_by_id

    def _generate_memory_entries(self, dialogues: list[Dialogue]) -> list[MemoryEntry]:
        return self._recorded(super()._generate_memory_entries(dialogues), dialogues)

    def _generate_memory_entries_worker(
        self, window: list[Dialogue], dialogue_ids: list[int], window_num: int
    ) -> list[MemoryEntry]:
        entries = super()._generate_memory_entries_worker(window, dialogue_ids, window_num)
        return self._recorded(entries, window)

    def _recorded(
        self, entries: list[MemoryEntry], window: Sequence[Dialogue]
    ) -> list[MemoryEntry]:
        self.empty_windows += not entries
        source = [self._said[dialogue.dialogue_id] for dialogue in window]
        speakers = dict.fromkeys(turn.speaker for turn in source)
        first, when = window[0].dialogue_id, source[0].when
        for n, entry in enumerate(entries):
            entry.entry_id = f"{self._conversation.id}/simplemem-t{first:04d}-{n:03d}"
            at = _time(entry)
            session = _session(at, source)
            when = session.when if session else at or when
            self.records[entry.entry_id] = MemoryRecord(
                entry.entry_id,
                entry.lossless_restatement,
                " and ".join(s for s in speakers if s in entry.persons),
                session.session if session else None,
                when,
            )
        return entries


class _InOrder:
    """The store, given a batch in order of ids: parallel windows end in any order."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def add_entries(self, entries: Iterable[MemoryEntry]) -> None:
        self._store.add_entries(sorted(entries, key=lambda entry: str(entry.entry_id)))


def _time(entry: MemoryEntry) -> datetime | None:
    """Return the entry's own time, without a zone, if it has one that can be read."""
    try:
        found = datetime.fromisoformat((entry.timestamp or "").removesuffix("Z"))
    except (AttributeError, ValueError):
        return None
    return found.replace(tzinfo=None)


def _session(at: datetime | None, source: Sequence[MemoryRecord]) -> MemoryRecord | None:
    """Return a turn of the session that an entry of time `at` comes from, if that can be known."""
    starts = {turn.session: turn for turn in source}
    if len(starts) > 1:
        # An entry's time is when something happened; only where it is to the minute when a session
        # took place does it tell the session.
        starts = {session: turn for session, turn in starts.items() if turn.when == at}
    return next(iter(starts.values())) if len(starts) == 1 else None
