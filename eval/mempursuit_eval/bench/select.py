"""`mempursuit-eval bench select`: the selection alone, against what it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from mempursuit_core import select, warmup
from mempursuit_eval.bench.full_gram import select_full_gram
from mempursuit_eval.bench.report import Column, Report, Table, machine
from mempursuit_eval.bench.select_pools import (
    Asked,
    Store,
    asked,
    locomo_stores,
    synthetic_stores,
)
from mempursuit_eval.bench.select_processes import cold_start, growth, two_processes
from mempursuit_eval.bench.timing import Contender, Summary, alternate, ratio

GRID = [(P, K, 1536) for P in (100, 200, 300, 500) for K in (10, 20, 50, 100)]
DIMENSIONS = [(200, 20, d) for d in (384, 768, 3072)]
GROWTH = (1_000, 10_000, 100_000)

# The paper's Table 14: median ms on one CPU thread of a Xeon Gold 5117.
PUBLISHED = {
    (100, 10): 4.54, (100, 20): 6.30, (100, 50): 11.79, (100, 100): 22.75,
    (200, 10): 7.27, (200, 20): 8.40, (200, 50): 13.62, (200, 100): 23.99,
    (300, 10): 9.73, (300, 20): 12.16, (300, 50): 17.11, (300, 100): 26.49,
    (500, 10): 18.04, (500, 20): 22.47, (500, 50): 30.67, (500, 100): 38.58,
}  # fmt: skip

OURS, GEMV, FULL, MMR, DPP = "mempursuit", "gemv", "full Gram", "MMR", "DPP"

Tick = Callable[[str, int, int], None]


def run_select_bench(
    out: Path | None = None,
    data: Path | None = None,
    quick: bool = False,
    tick: Tick = lambda what, done, total: None,
) -> Report:
    """Measure the selection over the paper's grid and beyond; all contenders on one thread.

    Args:
        out: folder for the JSON and the Markdown; None writes nothing.
        data: a file in LoCoMo's format to embed; None draws clustered synthetic pools.
        quick: a few cells and rounds, to see that it runs.
        tick: told what is measured, how many inputs are done, and how many there are.
    """
    from threadpoolctl import threadpool_limits

    where = machine()
    if data is None:
        stores, source = synthetic_stores(0, 60 if quick else 700, 256), "synthetic clusters"
    else:
        from mempursuit_eval.encoders.wordllama import WordLlamaEncoder

        encoder = WordLlamaEncoder()
        stores, source = locomo_stores(data, encoder), f"turns of {data.name}, {encoder.name}"
    cells = [(20, 5, 256), (30, 10, 256)] if quick else GRID + DIMENSIONS
    key = cells[-1 if quick else GRID.index((200, 20, 1536))]
    questions, rounds = (3, 2) if quick else (20, 6)
    warmup()
    with threadpool_limits(1):
        rows = [_cell(stores, *cell, questions, rounds, tick) for cell in cells]
        again = _again(stores, *key, questions)
    threads = _threads(asked(stores, *_pool(key), 8), key[1], 4 if quick else 60)
    report = Report(
        "select",
        "The selection alone",
        {**where, "pools": source, "pyversity": version("pyversity"), "threads": "1 each"},
        [
            Table("Median and P95 in ms", _MS, rows),
            Table("How many times MemPursuit's own time", _RATIOS, rows),
            Table("The same pool again and again, in the caches already", _AGAIN, again),
            Table(
                "Growth with the pool",
                _GROWTH,
                growth((200,) if quick else GROWTH, 64 if quick else 384, 20),
            ),
            Table("Cold start of a whole process", _COLD, cold_start(1 if quick else 7)),
            Table("Callers at once", _THREADS, threads),
        ],
        [
            "All contenders get the same float32 inputs in one run, in alternating order. Nobody "
            "gets a pool that another has just used, so it is in none of the small caches, as when "
            "it comes from a store. MMR and DPP are pyversity's, with diversity 0.5 and the "
            "cosines handed in. Ratios are medians over the inputs.",
            f"Callers at once: two plain processes did {two_processes():.2f} times the work of one "
            "on this machine just then; threads cannot do more.",
            "Published figures are of another machine: the paper's Table 14.",
        ],
    )
    if out is not None:
        report.write(out)
    return report


def _contenders(K: int) -> list[Contender[Asked]]:
    from pyversity import dpp, mmr

    return [
        Contender(OURS, lambda a: select(a.query, a.pool, K)),
        Contender(GEMV, lambda a: a.pool @ a.query),
        Contender(FULL, lambda a: select_full_gram(a.query, a.pool, K)),
        Contender(MMR, lambda a: mmr(a.pool, a.pool @ a.query, K)),
        Contender(DPP, lambda a: dpp(a.pool, a.pool @ a.query, K)),
    ]


def _again(stores: list[Store], P: int, K: int, d: int, questions: int) -> list[dict[str, Any]]:
    """Time every contender on each pool right after it has used it a few times."""
    inputs = asked(stores, P, d, questions)
    ms: dict[str, list[float]] = {}
    for given in inputs:
        for contender in _contenders(K):
            took = alternate([contender], [given], rounds=3, pause=0.0)[contender.name]
            ms.setdefault(contender.name, []).append(float(np.median(took)))
    ours = np.array(ms[OURS])
    return [
        {
            "P": P,
            "K": K,
            "d": d,
            "contender": name,
            "ms": float(np.median(values)),
            "ratio": float(np.median(np.array(values) / ours)),
        }
        for name, values in ms.items()
    ]


def _cell(
    stores: list[Store], P: int, K: int, d: int, questions: int, rounds: int, tick: Tick
) -> dict[str, Any]:
    """Time all contenders on one pool size, budget and dimension."""
    contenders = _contenders(K)
    samples = alternate(
        contenders,
        asked(stores, P, d, questions),
        rounds=rounds,
        pause=0.0,
        stagger=max(1, questions // len(contenders)),
        tick=lambda done, total: tick(f"P={P} K={K} d={d}", done, total),
    )
    row: dict[str, Any] = {"P": P, "K": K, "d": d, "published": PUBLISHED.get((P, K))}
    if d != 1536:
        row["published"] = None
    for name, ms in samples.items():
        summary = Summary.of(ms)
        row[name], row[f"{name} p95"] = summary.median, summary.p95
        row[f"{name} / {OURS}"] = ratio(samples, name, OURS)
    row[f"{OURS} / {GEMV}"] = ratio(samples, OURS, GEMV)
    return row


def _threads(questions: list[Asked], K: int, calls: int) -> list[dict[str, Any]]:
    """Return how many selections a second 1, 2 and 4 threads finish, all calling at once."""

    def work(_: int) -> None:
        for i in range(calls):
            one = questions[i % len(questions)]
            select(one.query, one.pool, K)

    rows: list[dict[str, Any]] = []
    for threads in (1, 2, 4):
        rates = []
        with ThreadPoolExecutor(threads) as workers:
            for _ in range(5):
                began = perf_counter()
                list(workers.map(work, range(threads)))
                rates.append(threads * calls / (perf_counter() - began))
        best = max(rates)
        rows.append(
            {"threads": threads, "rate": best, "gain": best / (rows or [{"rate": best}])[0]["rate"]}
        )
    return rows


def _pool(cell: tuple[int, int, int]) -> tuple[int, int]:
    return cell[0], cell[2]


_SIZE = [Column("P", "P", "d"), Column("K", "K", "d"), Column("d", "d", "d")]
_MS = [
    *_SIZE,
    *(
        column
        for name in (OURS, GEMV, FULL, MMR, DPP)
        for column in (Column(name, name, ".3f"), Column(f"{name} p95", "P95", ".3f"))
    ),
    Column("published", "published", ".2f"),
]
_RATIOS = [
    *_SIZE,
    Column(f"{OURS} / {GEMV}", "MemPursuit in gemvs", ".1f"),
    *(Column(f"{name} / {OURS}", name, ".1f") for name in (FULL, MMR, DPP)),
]
_AGAIN = [
    *_SIZE,
    Column("contender", "contender"),
    Column("ms", "ms", ".3f"),
    Column("ratio", "times MemPursuit's", ".2f"),
]
_GROWTH = [
    *_SIZE,
    Column("ms", "ms", ".2f"),
    Column("gemv_ms", "gemv ms", ".2f"),
    Column("gemvs", "in gemvs", ".1f"),
    Column("pool_mb", "pool MB", ".1f"),
    Column("extra_mb", "peak beyond it MB", ".1f"),
]
_COLD = [
    Column("what", "process"),
    Column("seconds", "s", ".3f"),
    Column("over numpy", "over numpy s", ".3f"),
]
_THREADS = [
    Column("threads", "threads", "d"),
    Column("rate", "selections/s", ".0f"),
    Column("gain", "times one", ".2f"),
]
