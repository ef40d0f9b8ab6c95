"""One framework, one conversation: a filled store that can be asked for a question's pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from mempursuit_adapters import Pool
from mempursuit_eval.encoders.base import Encoder
from mempursuit_eval.records import MemoryRecord


class Backbone(ABC):
    """A framework's store for one conversation, opened in (or created under) `folder`.

    The pool must be the one the framework's adapter sees: a subclass asks the adapter's own pool
    function, so that the evaluator's arms and a user's attached framework cannot drift apart.
    """

    name: ClassVar[str]  # as in --frameworks
    kind: ClassVar[Literal["package", "port"]] = "package"
    expands: ClassVar[bool] = False  # whether `context` differs from the chosen memories

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self.encoder = encoder
        self.folder = folder

    @property
    @abstractmethod
    def target(self) -> Any:
        """The framework object a user would hand to the adapter's `attach()`."""

    @abstractmethod
    def fill(self, records: Sequence[MemoryRecord]) -> None:
        """Write `records` into the empty store, without an LLM."""

    @abstractmethod
    def pool(self, question: str) -> Pool:
        """Return the question's candidates in native order; ids are MemoryRecord ids."""

    def context(self, pool: Pool, positions: Sequence[int]) -> list[str]:
        """Return ids of the memories that reach the model when `positions` of `pool` are chosen.

        They are the chosen ones, in order, unless the framework expands what was chosen.
        """
        return [str(pool.ids[i]) for i in positions]

    def facts(self) -> dict[str, Any]:
        """Return what the manifest must say about this backbone (active signals, quirks)."""
        return {}

    def close(self) -> None:  # noqa: B027 - optional to override
        """Release files and connections."""

    @classmethod
    @abstractmethod
    def versions(cls) -> dict[str, str]:
        """Return the versions of the packages behind this backbone, e.g. {"mem0ai": "2.2.1"}."""
