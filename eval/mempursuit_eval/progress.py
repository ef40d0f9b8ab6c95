"""Progress bars of a run."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class RunProgress:
    """One bar over all (framework, conversation) pairs and one for the pair at hand."""

    def __init__(self, pairs: int, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._all = self._bars.add_task("stores", total=pairs)
        self._one = self._bars.add_task("", total=1)
        self._seen: set[tuple[str, str]] = set()

    def tick(self, framework: str, conversation: str, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of `what` are finished."""
        if (framework, conversation) not in self._seen:
            self._bars.update(self._all, completed=len(self._seen))
            self._seen.add((framework, conversation))
        self._bars.update(
            self._one,
            description=f"{framework} · {conversation} · {what}",
            completed=done,
            total=total,
        )

    def __enter__(self) -> RunProgress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
