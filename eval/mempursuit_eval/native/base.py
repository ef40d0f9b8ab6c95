"""What the evaluator asks of a framework's writer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mempursuit_eval.backbones import Backbone
from mempursuit_eval.datasets import Conversation
from mempursuit_eval.judged.errors import EndpointError
from mempursuit_eval.records import MemoryRecord


class WritingFailedError(EndpointError):
    """A conversation's memories could not be written; the message says what to do."""


@dataclass(frozen=True)
class Endpoint:
    """Where a framework's own client sends its calls.

    Attributes:
        url: the base URL.
        key: what to give as API key; not the user's.
        model: the name of the model.
        concurrency: calls at a time, at most; for writers that ask in parallel.
    """

    url: str
    key: str
    model: str
    concurrency: int


@dataclass(frozen=True)
class PlannedCall:
    """One call a writer is expected to make, in estimated tokens."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Written:
    """What a writer left in a store.

    Attributes:
        records: the memories, under the ids by which the backbone's pools name them.
        notes: what went as the manifest should say; counts are added up over conversations.
    """

    records: Sequence[MemoryRecord]
    notes: dict[str, int | str] = field(default_factory=dict)


class Writer(ABC):
    """A framework's own writer, which fills the store of a backbone."""

    framework: ClassVar[str]  # as in --frameworks
    version: ClassVar[int] = 1  # another one writes another store

    @abstractmethod
    def write(self, backbone: Backbone, conversation: Conversation, endpoint: Endpoint) -> Written:
        """Fill the empty store of `backbone` and return the memories it now holds.

        Their ids, and what is asked, follow from the conversation and the replies alone.
        """

    @abstractmethod
    def plan(self, conversation: Conversation) -> list[PlannedCall]:
        """Return the calls that writing `conversation` is expected to take."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return how it writes and what it lets be known of its memories, for the manifest."""
