"""What `attach()` and `install()` return."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TypeVar

from mempursuit_adapters.choice import Choice
from mempursuit_adapters.patching import Patches
from mempursuit_adapters.reader import Reader, Stats
from mempursuit_core import warmup

_Self = TypeVar("_Self", bound="Handle")


class Handle:
    """A live attachment; a context manager that detaches at the end of the block.

    It keeps its target alive until `detach()`. Dropping the handle does not detach.
    """

    def __init__(self, reader: Reader, patches: Patches) -> None:
        self.reader = reader
        self._patches = patches
        with suppress(Exception):  # the first search would only be slower
            warmup()

    def detach(self) -> None:
        """Restore the target exactly; calling it again does nothing."""
        self._patches.undo()

    @property
    def attached(self) -> bool:
        """Whether the target still reads through MemPursuit."""
        return self._patches.active

    @property
    def last(self) -> Choice | None:
        """The newest choice (this thread's or task's if it made one), or None."""
        return self.reader.last

    def stats(self) -> Stats:
        """Searches, fallbacks by cause, added milliseconds and pool sizes so far."""
        return self.reader.stats()

    def explain(self) -> str:
        """Say what the newest search changed against the framework's own top K."""
        choice = self.last
        return choice.explain() if choice is not None else "no search has been read yet"

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()

    def __repr__(self) -> str:
        state = "attached" if self.attached else "detached"
        return f"<mempursuit handle for {self.reader.framework}, {state}>"


class Installation:
    """The one class-level attachment a framework can have."""

    def __init__(self, framework: str) -> None:
        self._framework = framework
        self._handle: Handle | None = None

    def refuse_second(self) -> None:
        """Raise RuntimeError if the framework is already installed."""
        if self._handle is not None and self._handle.attached:
            raise RuntimeError(
                f"mempursuit_adapters.{self._framework} is already installed; uninstall() it first"
            )

    def keep(self, handle: Handle) -> Handle:
        """Remember `handle` as the installed one and return it."""
        self._handle = handle
        return handle

    @property
    def handle(self) -> Handle | None:
        """The installed handle, or None."""
        return self._handle

    def uninstall(self) -> None:
        """Detach what install() attached; does nothing if nothing is installed."""
        if self._handle is not None:
            self._handle.detach()
            self._handle = None
