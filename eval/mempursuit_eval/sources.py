"""Where a store's memories come from: the data set, or a framework's own writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mempursuit_eval.backbones import Backbone
from mempursuit_eval.datasets import Conversation, DataError, Dataset
from mempursuit_eval.records import MemoryRecord

NATIVE = "native"
MEMORY_KINDS = ("observations", "turns", NATIVE)

Report = Callable[[str, int, int], None]  # what, done, total


class MemorySource(Protocol):
    """Fills the stores of a run, and knows afterwards what is in them."""

    def check(self, dataset: Dataset, frameworks: Sequence[str]) -> None:
        """Find out before any store is filled what would stop it."""
        ...

    def key(self, framework: str) -> object:
        """Return, as JSON, what the content of a store depends on besides data and versions."""
        ...

    def fill(self, backbone: Backbone, conversation: Conversation, report: Report) -> None:
        """Write the memories of `conversation` into the empty store of `backbone`."""
        ...

    def records(self, folder: Path, conversation: Conversation) -> Sequence[MemoryRecord]:
        """Return the memories in the finished store of `folder`."""
        ...

    def facts(self, framework: str, folders: Sequence[Path]) -> dict[str, Any]:
        """Return what the manifest must say of how a framework's stores were filled."""
        ...


@dataclass(frozen=True)
class GivenMemories:
    """Memories of one kind that the data set brings: no model is needed."""

    kind: str

    def check(self, dataset: Dataset, frameworks: Sequence[str]) -> None:
        """See `MemorySource`.

        Raises:
            DataError: a conversation has none of the kind.
        """
        for conversation in dataset.conversations:
            if not conversation.memories.get(self.kind):
                there = ", ".join(kind for kind, found in conversation.memories.items() if found)
                raise DataError(
                    f"{conversation.id} has no {self.kind} to fill a store with; "
                    f"--memories: there are {there or 'none'}"
                )

    def key(self, framework: str) -> object:
        """See `MemorySource`."""
        return self.kind

    def fill(self, backbone: Backbone, conversation: Conversation, report: Report) -> None:
        """See `MemorySource`."""
        report("fill", 0, 1)
        backbone.fill(conversation.memories[self.kind])

    def records(self, folder: Path, conversation: Conversation) -> Sequence[MemoryRecord]:
        """See `MemorySource`."""
        return conversation.memories[self.kind]

    def facts(self, framework: str, folders: Sequence[Path]) -> dict[str, Any]:
        """See `MemorySource`."""
        return {}
