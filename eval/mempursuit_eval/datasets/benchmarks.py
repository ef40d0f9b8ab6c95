"""Which benchmark a file is: asked for by name, or told by its content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mempursuit_eval.datasets.base import DataError, Dataset
from mempursuit_eval.datasets.beam import load_beam
from mempursuit_eval.datasets.locomo import load_locomo
from mempursuit_eval.datasets.longmemeval import load_longmemeval
from mempursuit_eval.datasets.reading import read_json

AUTO = "auto"
BENCHMARKS: dict[str, Callable[[Path], Dataset]] = {
    "locomo": load_locomo,
    "longmemeval": load_longmemeval,
    "beam": load_beam,
}


def load_dataset(path: Path, benchmark: str = AUTO) -> Dataset:
    """Read `path` as the benchmark called `benchmark`, or as the one its content shows.

    Raises:
        DataError: it cannot be read, or its content is of no benchmark known here.
        ValueError: there is no such benchmark.
    """
    if benchmark == AUTO:
        benchmark = detect(path)
    if benchmark not in BENCHMARKS:
        raise ValueError(f"--benchmark: {benchmark!r} is not one of {[AUTO, *BENCHMARKS]}")
    return BENCHMARKS[benchmark](path)


def detect(path: Path) -> str:
    """Return the name of the benchmark that `path` holds.

    Raises:
        DataError: it cannot be read or told.
    """
    if path.is_dir():
        return "beam"
    _, value = read_json(path)
    first = value[0] if isinstance(value, list) and value else None
    keys = set(first) if isinstance(first, dict) else set()
    if "haystack_sessions" in keys:
        return "longmemeval"
    if keys & {"conversation", "qa"}:
        return "locomo"
    if "turns" in keys or any(key.startswith("plan-") for key in keys):
        raise DataError(f"--data: {path} is one of BEAM's chats; pass its folder")
    raise DataError(
        f"--data: {path} is in no known format: LoCoMo and LongMemEval files are lists of objects "
        "with `conversation` and `qa`, or with `haystack_sessions`; BEAM chats are folders. "
        f"--benchmark names one of {', '.join(BENCHMARKS)}"
    )
