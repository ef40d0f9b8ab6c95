"""Telling which memories of a pool can be judged, and why the others cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters.pool import Pool

# Causes, as counted in `Choice.trouble` and `Stats.fallbacks`.
MISSING = "missing_vector"
NOT_NUMBERS = "unreadable_vector"
DIMENSION = "dimension_mismatch"
NOT_FINITE = "not_finite"
ZERO = "zero_vector"
NO_QUERY = "no_query_vector"
BAD_QUERY = "unusable_query_vector"
MISALIGNED = "misaligned_vectors"

Row = NDArray[np.float32] | NDArray[np.float64]


@dataclass
class Triage:
    """What of a pool can be judged.

    Attributes:
        query: (d,) the query, or None if nothing can be judged.
        judged: (J,) pool positions with a usable vector, ascending.
        rows: (J,) those vectors, each (d,).
        trouble: cause -> number of memories it concerns.
    """

    query: Row | None = None
    judged: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    trouble: Counter[str] = field(default_factory=Counter)


def triage(pool: Pool, positions: Sequence[int]) -> Triage:
    """Sort the pool's `positions` into those that can be judged and those that cannot.

    Never raises, whatever the pool holds.
    """
    result = Triage()
    if not aligned(pool):
        # Which vector belongs to which memory is anybody's guess.
        result.trouble[MISALIGNED] = len(positions)
        return result
    query, fault = read_vector(pool.query)
    if query is None:
        result.trouble[NO_QUERY if fault == MISSING else BAD_QUERY] = len(positions)
        return result
    result.query = query
    for i in positions:
        try:
            vector: Any = pool.vectors[i]
        except Exception:
            row, fault = None, NOT_NUMBERS
        else:
            row, fault = read_vector(vector, query.shape[0])
        if row is None:
            result.trouble[fault] += 1
        else:
            result.judged.append(i)
            result.rows.append(row)
    return result


def first_places(ids: Sequence[Hashable]) -> list[int]:
    """Return the positions at which an id appears for the first time."""
    try:
        if len(set(ids)) == len(ids):
            return list(range(len(ids)))
        return sorted({i: p for p, i in reversed(list(enumerate(ids)))}.values())
    except TypeError:  # unhashable ids cannot be compared: every place counts
        return list(range(len(ids)))


def held_places(native: Sequence[int], judged: Collection[int], budget: int) -> list[int]:
    """Return the places of `native[:budget]` whose memory cannot be judged and so stays there."""
    usable = set(judged)
    return [place for place, i in enumerate(native[:budget]) if i not in usable]


def aligned(pool: Pool) -> bool:
    """Say whether the pool has one vector, or one None, for every id."""
    try:
        return len(pool.vectors) == len(pool.ids)
    except Exception:
        return False


def read_vector(vector: Any, dimension: int | None = None) -> tuple[Row | None, str]:
    """Return `vector` as floats and "", or None and the cause. Never raises."""
    if vector is None:
        return None, MISSING
    try:
        row = np.asarray(vector)
        if row.dtype.kind not in "fiubO":
            return None, NOT_NUMBERS
        if row.dtype not in (np.float32, np.float64):
            row = row.astype(np.float32 if row.dtype == np.float16 else np.float64)
    except Exception:  # an object's own conversion may raise anything
        return None, NOT_NUMBERS
    if row.size == 0:
        return None, MISSING
    if row.ndim != 1 or (dimension is not None and row.shape[0] != dimension):
        return None, DIMENSION
    if not np.isfinite(row).all():
        return None, NOT_FINITE
    if not row.any():
        return None, ZERO
    return row, ""
