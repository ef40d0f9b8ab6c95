"""LightMem's own `add_memory` and offline update, where the real package can be imported."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

from mempursuit_adapters.patching import Patches
from mempursuit_eval.backbones import Backbone, BackboneUnavailableError
from mempursuit_eval.backbones import lightmem as backbones
from mempursuit_eval.backbones.lightmem import RECORD_ID
from mempursuit_eval.datasets import Conversation
from mempursuit_eval.judged.tokens import estimate_tokens
from mempursuit_eval.native.base import Endpoint, PlannedCall, Writer, Written
from mempursuit_eval.native.surroundings import silenced
from mempursuit_eval.native.turns import said, turns
from mempursuit_eval.records import MemoryRecord

# As in LightMem's LoCoMo experiment.
SCORE_THRESHOLD = 0.9
MAX_TOKENS = 16000
BUFFER_TOKENS = 512  # its short-term buffer, fixed in its constructor

# For the estimate alone.
_STAMP_TOKENS = 20  # "[2023-05-08T13:56:00.500, Mon] 12.Name: "
_REPLY_TOKENS_A_TURN = 35


class LightMemWriter(Writer):
    """Turn by turn, as in LightMem's LoCoMo experiment, without its compression models.

    Raises:
        BackboneUnavailableError: the real LightMem cannot be imported.
    """

    framework: ClassVar[str] = "lightmem"

    def __init__(self) -> None:
        package: Any = backbones.package()
        if package is None:
            raise BackboneUnavailableError(
                "--memories native: LightMem writes with its real package only, which is not on "
                "PyPI: pip install git+https://github.com/zjunlp/LightMem"
            )
        self._package = package
        self._counters: dict[str, tuple[Any, str]] = {}
        self._prompts = import_module("lightmem.memory.prompts")

    def write(self, backbone: Backbone, conversation: Conversation, endpoint: Endpoint) -> Written:
        """Extract, store and update; see `Writer.write`."""
        memory = backbone.target
        by_id = {turn.id: turn for turn in turns(conversation)}
        with silenced(*self._talkative()), _numbered_entries():
            counted = self._equip(memory, endpoint)
            # A counter of the whole process that stands in the prompts: replies are found again
            # only if every conversation begins at its start.
            self._package.GLOBAL_TOPIC_IDX = 0
            last = len(by_id) - 1
            for n, turn in enumerate(by_id.values()):
                memory.add_memory(
                    messages=_messages(turn),
                    METADATA_GENERATE_PROMPT=self._extraction_prompt(),
                    force_segment=n == last,
                    force_extract=n == last,
                )
            memory.construct_update_queue_all_entries()
            memory.offline_update_all_entries(score_threshold=SCORE_THRESHOLD)
            return Written(
                _read_back(memory, conversation, by_id), {"buffer_tokens_counted": counted}
            )

    def plan(self, conversation: Conversation) -> list[PlannedCall]:
        """Return one call a full buffer; updates cannot be known ahead. See `Writer.plan`."""
        fixed = estimate_tokens(self._extraction_prompt())
        found: list[PlannedCall] = []
        buffered = prompt = count = 0
        for turn in turns(conversation):
            size = estimate_tokens(said(turn))
            if count and buffered + size > BUFFER_TOKENS:
                found.append(PlannedCall(fixed + prompt, count * _REPLY_TOKENS_A_TURN))
                buffered = prompt = count = 0
            buffered, prompt, count = buffered + size, prompt + size + _STAMP_TOKENS, count + 1
        if count:
            found.append(PlannedCall(fixed + prompt, count * _REPLY_TOKENS_A_TURN))
        return found

    def facts(self) -> dict[str, Any]:
        """Say how turns are handed over and what of LightMem is off."""
        return {
            "writer": "add_memory turn by turn, then the offline update at "
            f"{SCORE_THRESHOLD}; {BUFFER_TOKENS} tokens a call",
            "off": "LLMLingua compression and topic segmentation (they need torch): a turn is a "
            "segment",
            "estimate": "extraction alone: how many entries it updates is not known ahead",
            "sessions_known": "all memories; an updated one keeps the turn it had first",
            "evidence": "the turn that the model named as the source",
        }

    def _extraction_prompt(self) -> str:
        prompts = self._prompts
        found: str = getattr(
            prompts, "METADATA_GENERATE_PROMPT_locomo", prompts.METADATA_GENERATE_PROMPT
        )
        return found

    def _equip(self, memory: Any, endpoint: Endpoint) -> str:
        """Give `memory` what its backbone, which only reads, is built without.

        Return how its buffer counts tokens.
        """
        package = self._package
        memory.config.index_strategy = "embedding"
        manager = import_module("lightmem.configs.memory_manager.base").MemoryManagerConfig(
            model_name="openai",
            configs={
                "model": endpoint.model,
                "api_key": endpoint.key,
                "openai_base_url": endpoint.url,
                "max_tokens": MAX_TOKENS,
            },
        )
        memory.manager = package.MemoryManagerFactory.from_config(manager)
        counter, counted = self._counting(endpoint.model)
        patches = Patches()
        patches.attribute(
            import_module(package.ShortMemBufferManager.__module__),
            "resolve_tokenizer",
            lambda _: counter,
        )
        try:
            memory.shortmem_buffer_manager = package.ShortMemBufferManager(BUFFER_TOKENS)
        finally:
            patches.undo()
        return counted

    def _counting(self, model: str) -> tuple[Any, str]:
        """Return LightMem's tokenizer for `model`, or an estimate in its place, and which it is."""
        if model not in self._counters:
            try:
                found = self._package.resolve_tokenizer(model), "by tiktoken"
            except Exception:  # it downloads its tables
                found = _Estimate(), "by characters / 4: tiktoken's tables were not to be had"
            self._counters[model] = found
        return self._counters[model]

    def _talkative(self) -> list[ModuleType]:
        return [
            import_module(f"lightmem.{name}")
            for name in (
                "memory.utils", "factory.memory_manager.openai",
                "factory.memory_buffer.short_term_memory",
            )
        ]  # fmt: skip


@contextmanager
def _numbered_entries() -> Iterator[None]:
    """Give entries ids in the order they are made instead of random ones.

    Qdrant lists by id, and the prompts of the update follow that list: replies kept from a run that
    was cut short are found again only if the order is the same.
    """
    numbers = itertools.count(1)
    patches = Patches()
    patches.attribute(
        import_module("lightmem.memory.utils"),
        "uuid",
        SimpleNamespace(uuid4=lambda: uuid.UUID(int=next(numbers))),
    )
    try:
        yield
    finally:
        patches.undo()


class _Estimate:
    """Stands where tiktoken's encoding would: as many tokens as the text is thought to have."""

    def encode(self, text: str) -> range:
        return range(estimate_tokens(text))


def _messages(turn: MemoryRecord) -> list[dict[str, str]]:
    """Return a turn as a pair of messages; LightMem reads the user's and expects an answer."""
    common = {
        "time_stamp": turn.when.isoformat(sep=" ", timespec="seconds"),
        # Stored with each memory and shown to no model: it tells the turn a memory came from.
        "speaker_id": turn.id,
        "speaker_name": turn.speaker,
    }
    return [
        {"role": "user", "content": said(turn), **common},
        {"role": "assistant", "content": "", **common},
    ]


def _read_back(
    memory: Any, conversation: Conversation, by_id: dict[str, MemoryRecord]
) -> list[MemoryRecord]:
    place = {turn: n for n, turn in enumerate(by_id)}
    entries = sorted(
        memory.embedding_retriever.get_all(),
        key=lambda e: (place.get(e["payload"]["speaker_id"], -1), str(e["payload"]["memory"])),
    )
    records = []
    for n, entry in enumerate(entries):
        payload = entry["payload"]
        turn = by_id.get(payload["speaker_id"])
        record = MemoryRecord(
            f"{conversation.id}/lightmem-{n:04d}",
            str(payload["memory"] or ""),
            turn.speaker if turn else "",
            turn.session if turn else None,
            turn.when if turn else next(reversed(by_id.values())).when,
            turn.evidence if turn else (),
        )
        memory.embedding_retriever.update(entry["id"], payload={RECORD_ID: record.id})
        records.append(record)
    return records
