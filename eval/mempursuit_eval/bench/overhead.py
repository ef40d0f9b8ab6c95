"""What MemPursuit adds to a framework's own search: the measurement all frameworks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mempursuit_adapters import Handle, Pool, choose
from mempursuit_core import Dials
from mempursuit_eval.bench.report import Column, Table
from mempursuit_eval.bench.timing import Contender, Samples, Summary, added, alternate

WITHOUT, WIDE, WITH = "without", "wide", "with"
READ, CHOOSE = "read", "choose"

MEANING = {
    WITHOUT: "search without MemPursuit",
    WIDE: "the same, its store asked for the whole pool",
    WITH: "search with MemPursuit attached",
    READ: "of that, the adapter: vectors and choice",
    CHOOSE: "of that, the choice alone",
}
ADDED, WIDENING, PURSUIT = "with - without", "wide - without", "with - wide"


@dataclass(frozen=True)
class Searches:
    """A framework's search, for one question at a time.

    Attributes:
        search: as its user calls it, for K results; with MemPursuit between `attach()` and detach.
        wide: the same with the store asked for the pool; None where it is asked for it anyway.
        attach: attaches MemPursuit to what `search` asks.
        pool: the pool that pursuit chooses from.
    """

    search: Callable[[str], object]
    wide: Callable[[str], object] | None
    attach: Callable[[], Handle]
    pool: Callable[[str], Pool]


def measure(
    searches: Searches,
    questions: Sequence[str],
    *,
    k: int,
    dials: Dials,
    rounds: int,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> Samples:
    """Time the searches in alternation, and the choice alone on the pools they find.

    Attaching and detaching happen outside the clock, so that the search without MemPursuit runs on
    a target nothing of ours is attached to.

    Raises:
        RuntimeError: a search fell back to the framework's order, so there is nothing to measure.
    """
    pools = {question: searches.pool(question) for question in questions}
    attached = _Attached(searches.attach)
    contenders = [
        Contender(WITHOUT, searches.search),
        Contender(WITH, searches.search, attached.around, attached.parts),
        Contender(CHOOSE, lambda question: choose(pools[question], k, dials)),
    ]
    if searches.wide is not None:
        contenders.insert(1, Contender(WIDE, searches.wide))
    return alternate(contenders, questions, rounds=rounds, tick=tick)


def overhead_table(samples: Samples, title: str) -> Table:
    """Return the medians of every part and of what was added, as a share of the native search."""
    native = Summary.of(samples[WITHOUT]).median
    summaries = [
        (MEANING[name], name, Summary.of(samples[name])) for name in MEANING if name in samples
    ]
    summaries.append((f"added ({ADDED})", ADDED, added(samples, WITH, WITHOUT)))
    if WIDE in samples:
        summaries.append((f"· by widening ({WIDENING})", WIDENING, added(samples, WIDE, WITHOUT)))
        summaries.append((f"· by pursuit ({PURSUIT})", PURSUIT, added(samples, WITH, WIDE)))
    rows = [
        {
            "part": part,
            "key": key,
            "median_ms": s.median,
            "p95_ms": s.p95,
            "share": s.median / native,
            "n": s.n,
        }
        for part, key, s in summaries
    ]
    columns = [
        Column("part", "Part"),
        Column("median_ms", "Median ms", ".3f"),
        Column("p95_ms", "P95 ms", ".3f"),
        Column("share", "Of the search without", ".1%"),
    ]
    return Table(title, columns, rows)


class _Attached:
    """MemPursuit on the target for one search at a time."""

    def __init__(self, attach: Callable[[], Handle]) -> None:
        self._attach = attach

    @contextmanager
    def around(self) -> Iterator[None]:
        with self._attach() as handle:
            self._handle = handle
            yield

    def parts(self) -> dict[str, float]:
        stats = self._handle.stats()
        if stats.searches != 1 or stats.fallbacks:
            raise RuntimeError(
                f"a search was not read by MemPursuit (searches: {stats.searches}, "
                f"fallbacks: {stats.fallbacks}), so its time says nothing"
            )
        return {READ: stats.added_ms_median}
