"""What a terminal shows while a run is answered and judged."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mempursuit_eval.judged.caller import Spent
from mempursuit_eval.judged.plan import cost
from mempursuit_eval.judged.stages import Judgement

LOG_EVERY = 30.0  # seconds between lines where there is no terminal to draw a bar on


class JudgeProgress:
    """A bar with the time left, and what has been asked and paid so far."""

    def __init__(
        self, cases: int, spent: Spent, console: Console, prices: tuple[float, float] | None
    ) -> None:
        self._spent = spent
        self._console = console
        self._prices = prices
        self._total = cases
        self._done = self._unknown = 0
        self._began = self._logged = time.monotonic()
        self._bar = Progress(
            TextColumn("answers and verdicts"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=cases)

    def tick(self, judgement: Judgement) -> None:
        """Show one more case."""
        self._done += 1
        self._unknown += judgement.status in ("failed", "unparsed")
        self._bar.update(self._task, completed=self._done, description=self._paid())
        now = time.monotonic()
        if not self._console.is_terminal and now - self._logged >= LOG_EVERY:
            self._logged = now
            left = (now - self._began) / self._done * (self._total - self._done)
            self._console.print(
                f"{self._done:,}/{self._total:,} answers and verdicts, about {left / 60:.0f} min "
                f"left; {self._paid()}",
                highlight=False,
            )

    def _paid(self) -> str:
        return spent_line(self._spent, self._prices) + (
            f", {self._unknown} without a verdict" if self._unknown else ""
        )

    def __enter__(self) -> JudgeProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


def spent_line(spent: Spent, prices: tuple[float, float] | None) -> str:
    """Return what a run has paid, in words."""
    about = "about " if spent.estimated else ""
    line = (
        f"{spent.calls:,} calls, {about}{spent.prompt_tokens:,} tokens in and "
        f"{spent.completion_tokens:,} out"
    )
    if prices:
        line += f", {cost(spent.prompt_tokens, spent.completion_tokens, prices)}"
    return line + (f"; {spent.kept:,} replies kept from before" if spent.kept else "")
