"""The part of an adapter that must never break the user's search."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from mempursuit_adapters.choice import Choice, choose
from mempursuit_adapters.pool import Pool
from mempursuit_core import Dials

KEPT_SAMPLES = 10_000  # enough for a stable P95, bounded for a process that runs for months
KEPT_READERS = 8  # whose newest choice one thread or task remembers
SHOWN_DETAIL = 300  # characters of an error message that reach the log

# The newest choices of this thread or task, newest first, each with the reader it belongs to. The
# tuple is replaced, never changed, because child tasks share it.
_mine: ContextVar[tuple[tuple[weakref.ref[Reader], Choice], ...]] = ContextVar(
    "mempursuit_last", default=()
)


@dataclass(frozen=True)
class Stats:
    """What a handle's searches did so far.

    `fallbacks` counts searches by cause; `added_ms_*` is the time spent reading vectors and
    choosing, in milliseconds, over the last 10,000 searches; `pool_size_*` likewise.
    """

    searches: int
    fallbacks: dict[str, int]
    added_ms_median: float
    added_ms_p95: float
    pool_size_median: float
    pool_size_max: int


class Reader:
    """Chooses with one set of dials, falls back to native order, and keeps count.

    Thread-safe. `last` is the newest choice of the calling thread or task if it made one, else the
    newest of all.
    """

    def __init__(self, framework: str, dials: Dials) -> None:
        self.framework = framework
        self.dials = dials
        self._log = logging.getLogger(f"mempursuit.{framework}")
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._searches = 0
        self._fallbacks: Counter[str] = Counter()
        self._ms: deque[float] = deque(maxlen=KEPT_SAMPLES)
        self._sizes: deque[int] = deque(maxlen=KEPT_SAMPLES)
        self._newest: Choice | None = None

    def read(self, fetch: Callable[[], Pool], k: int, dials: Dials | None = None) -> Choice | None:
        """Fetch a pool and choose from it; None means "use the framework's own top K".

        `dials` replaces the reader's own for this read. Whatever goes wrong is counted and logged
        once per cause, never raised.
        """
        began = time.perf_counter()
        choice: Choice | None = None
        try:
            choice = choose(fetch(), k, dials or self.dials)
        except Exception as error:
            self.failed(error)
        else:
            size = len(choice.pool_ids)
            for cause, count in choice.trouble.items():
                self.fell_back(cause, f"{count} of {size} memories kept the framework's order")
        with self._lock:
            self._searches += 1
            self._ms.append(1000 * (time.perf_counter() - began))
            if choice is not None:
                self._sizes.append(len(choice.pool_ids))
        if choice is not None:
            self.remember(choice)
        return choice

    def remember(self, choice: Choice) -> None:
        """Make `choice` the newest of the calling thread or task.

        `read` does so itself. Call this when `read` ran in a worker thread on behalf of a caller
        whose `last` it should be.
        """
        others = [(ref, c) for ref, c in _mine.get() if ref() not in (None, self)]
        _mine.set(((weakref.ref(self), choice), *others[: KEPT_READERS - 1]))
        self._newest = choice

    def failed(self, error: Exception) -> None:
        """Count a fallback because of `error` and warn, once per type of error."""
        self.fell_back(type(error).__name__, _message(error))

    def fell_back(self, cause: str, detail: str) -> None:
        """Count a fallback and warn, once per cause."""
        self.warn(
            cause,
            f"the framework's own order is used where MemPursuit cannot judge ({cause}: {detail})",
        )

    def warn(self, cause: str, message: str) -> None:
        """Count `cause` among the fallbacks and log `message` the first time it occurs."""
        with self._lock:
            self._fallbacks[cause] += 1
            first = cause not in self._warned
            self._warned.add(cause)
        if first:
            self._log.warning(
                "%s: %s. Further cases are counted in handle.stats(), not logged.",
                self.framework,
                message,
            )

    @property
    def last(self) -> Choice | None:
        """The newest choice of this thread or task, else the newest of all, else None."""
        return next((c for ref, c in _mine.get() if ref() is self), self._newest)

    def stats(self) -> Stats:
        """Return a snapshot of the counters."""
        with self._lock:
            ms, sizes = list(self._ms), list(self._sizes)
            searches, fallbacks = self._searches, dict(self._fallbacks)
        return Stats(
            searches,
            fallbacks,
            float(np.median(ms)) if ms else 0.0,
            float(np.percentile(ms, 95)) if ms else 0.0,
            float(np.median(sizes)) if sizes else 0.0,
            max(sizes, default=0),
        )


def _message(error: Exception) -> str:
    try:
        return str(error)[:SHOWN_DETAIL]
    except Exception:  # an error may not even be able to describe itself
        return "no message"
