"""`select` and `select_many`: checking what comes in, handing it to the kernels."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mempursuit_core.inputs import (
    Floats,
    as_budget,
    as_vectors,
    check_dials,
    check_stop,
    unit,
    unit_rows,
)
from mempursuit_core.presets import Discount
from mempursuit_core.selection import Selection
from mempursuit_core.stopping import AdaptiveStop

# How many numbers of a vector the kernels take at a time; zeros at its end change nothing.
LANES = 32
# Bytes of working memory a thread keeps between calls: a pool of 1,000 memories of 4,000 numbers.
WORKSPACE_KEPT = 4_000_000

_threads_own = threading.local()


def select(
    query: ArrayLike,
    candidates: ArrayLike,
    k: int = 20,
    *,
    ridge: float = 1e-10,
    discount: Discount = 1.0,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Selection:
    """Pick the `k` memories that together reconstruct `query` (paper §3, Appendix A.1).

    Runs on one thread and releases the GIL while it computes. float32 pools are read as they
    are; whatever their precision could get wrong is decided in float64.

    Args:
        query: (d,) embedding of the query; any length, it is normalised here.
        candidates: (P, d) embeddings of the pool, one memory a row, in the backbone's order.
        k: the budget; a pool smaller than `k` is returned whole.
        ridge: λ of the refit (Eq. 6).
        discount: share γ of the reconstruction taken off the score: 1 is the paper, 0 plain
            relevance. "auto" is γ_t = min(1, t/8) · clip(0.75 · max b, 0, 1) with t memories
            picked: only what memories can account for, and less of it in the first picks.
        near_duplicate: cosine τ at which a memory counts as a repeat of a picked one and waits
            at the end; None turns it off.
        stop: adaptive stopping (Eq. 7); None spends the whole budget.

    Returns:
        Selection: picks in entry order.

    Raises:
        ValueError: an argument has the wrong shape, is not finite, is a zero vector, or is out of
            range; the message names the argument and the row.
    """
    budget = as_budget(k)
    try:
        dials = _dials(ridge, discount, near_duplicate, stop)
    except TypeError:  # one is not hashable, so it is no dial, which the checks will say
        dials = _dials.__wrapped__(ridge, discount, near_duplicate, stop)
    q, M = as_vectors(query, candidates)
    if M.shape[0] == 0:
        unit(q, "query")
        return Selection.empty()
    n = min(budget, M.shape[0])
    found = _run(M, q, n, dials)
    if not len(found):
        # NaN, infinity and zero vectors are named here; those of extreme length become usable.
        found = _run(unit_rows(M, "candidates"), unit(q, "query"), n, dials)
    return found


def select_many(
    queries: Sequence[ArrayLike] | NDArray[Any],
    pools: Sequence[ArrayLike] | NDArray[Any],
    k: int,
    *,
    threads: int | None = None,
    ridge: float = 1e-10,
    discount: Discount = 1.0,
    near_duplicate: float | None = None,
    stop: AdaptiveStop | None = None,
) -> list[Selection]:
    """Answer many questions at once, over the cores; the same answers as one by one.

    Args:
        queries: n query embeddings, each (d,).
        pools: n pools, each (P, d); P may differ.
        threads: how many run at a time; None takes every core this process may use.
        k, ridge, discount, near_duplicate, stop: as in :func:`select`, for all of them.

    Raises:
        ValueError: as in :func:`select`, with the number of the question in front; or `queries`
            and `pools` differ in number, or `threads` is below 1.
    """
    if len(queries) != len(pools):
        raise ValueError(
            f"queries and pools must be of one number, got {len(queries)} and {len(pools)}"
        )
    if threads is None:
        threads = _cores()
    elif isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a whole number of at least 1, got {threads!r}")
    as_budget(k)
    check_dials(ridge, discount, near_duplicate)
    check_stop(stop)
    dials: dict[str, Any] = {
        "ridge": ridge,
        "discount": discount,
        "near_duplicate": near_duplicate,
        "stop": stop,
    }
    one = partial(_numbered, k=k, dials=dials)
    questions = list(zip(range(len(queries)), queries, pools, strict=True))
    if threads == 1 or len(questions) < 2:
        return [one(question) for question in questions]
    with ThreadPoolExecutor(min(threads, len(questions))) as workers:
        return list(workers.map(one, questions))


def _numbered(
    question: tuple[int, ArrayLike, ArrayLike], k: int, dials: dict[str, Any]
) -> Selection:
    number, query, pool = question
    try:
        return select(query, pool, k, **dials)
    except ValueError as error:
        raise ValueError(f"question {number}: {error}") from None


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


@lru_cache(maxsize=64, typed=True)
def _dials(
    ridge: float, discount: Discount, near_duplicate: float | None, stop: AdaptiveStop | None
) -> NDArray[np.float64]:
    """Return the dials as the kernel takes them, checked."""
    check_dials(ridge, discount, near_duplicate)
    check_stop(stop)
    tolerance, patience = (0.0, 0) if stop is None else (stop.tolerance, stop.patience)
    gamma = -1.0 if discount == "auto" else float(discount)
    tau = 2.0 if near_duplicate is None else float(near_duplicate)
    dials = np.array([float(ridge), gamma, tau, float(tolerance), float(patience)])
    dials.flags.writeable = False
    return dials


def _run(M: Floats, q: Floats, n: int, dials: NDArray[np.float64]) -> Selection:
    """Return the Selection, empty where the kernel does not trust its input."""
    if M.shape[1] % LANES:
        M, q = _filled_up(M), _filled_up(q)
    locked = M.view()  # one type for the compiler, and nothing of the caller's can be written
    locked.setflags(write=False)
    whole, real = np.empty((3, n), np.int64), np.empty((4, n))
    n, m, path = _kernel()(locked, q.astype(np.float64), whole, real, dials, _workspace(M.size))
    return Selection.of(whole, real, path, n, m)


def _filled_up(vectors: Floats) -> Floats:
    """Return vectors with zeros behind their own numbers, up to a multiple of LANES."""
    d = vectors.shape[-1]
    wide = np.zeros((*vectors.shape[:-1], d + -d % LANES), vectors.dtype)
    wide[..., :d] = vectors
    return wide


def _workspace(size: int) -> NDArray[np.uint8]:
    """Return so many bytes at least: this thread's, unless they are too many to keep.

    Asking the system for fresh memory at every call would take as long as half the reading.
    """
    kept: NDArray[np.uint8] | None = getattr(_threads_own, "workspace", None)
    if kept is not None and kept.size >= size:
        return kept
    fresh = np.empty(size, np.uint8)
    if size <= WORKSPACE_KEPT:
        _threads_own.workspace = fresh
    return fresh


@cache
def _kernel() -> Any:
    """Return the compiled pursuit; numba loads at the first call, longer than all else here."""
    from mempursuit_core.kernels.pursue import pursue

    return pursue
