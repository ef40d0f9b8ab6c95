"""Choosing from a pool in which some memories may have no usable vector."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters.pool import Pool, Vector
from mempursuit_core import Dials, Selection, select

MISSING = "missing_vector"
NOT_NUMBERS = "unreadable_vector"
DIMENSION = "dimension_mismatch"
NOT_FINITE = "not_finite"
ZERO = "zero_vector"
NO_QUERY = "no_query_vector"


@dataclass(frozen=True, eq=False)
class Choice:
    """What one read chose, and why.

    Attributes:
        pool_ids: (P,) the pool in native order.
        positions: (n,) chosen positions in the pool, in the order handed back.
        scores: (n,) the score each pick was chosen by; None where the framework's order decided.
        selection: the pursuit over the memories that could be judged; None if there were none.
        judged: (J,) pool positions `selection.indices` refers to.
        trouble: cause -> number of memories that kept the framework's order because of it.
    """

    pool_ids: tuple[Hashable, ...]
    positions: tuple[int, ...]
    scores: tuple[float | None, ...]
    selection: Selection | None
    judged: tuple[int, ...]
    trouble: dict[str, int] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The chosen ids in the order handed back."""
        return tuple(self.pool_ids[i] for i in self.positions)

    @property
    def came_in(self) -> tuple[Hashable, ...]:
        """Chosen ids that the framework's own top K leaves out."""
        native = set(self.pool_ids[: len(self.positions)])
        return tuple(i for i in self.ids if i not in native)

    @property
    def went_out(self) -> tuple[Hashable, ...]:
        """Ids of the framework's own top K that were not chosen."""
        chosen = set(self.ids)
        return tuple(i for i in self.pool_ids[: len(self.positions)] if i not in chosen)

    def explain(self) -> str:
        """Say what changed against the framework's own top K, one memory a line."""
        rank = {self.pool_ids[i]: i + 1 for i in range(len(self.pool_ids))}
        lines = [f"{len(self.positions)} of {len(self.pool_ids)} memories, in entry order:"]
        fresh = set(self.came_in)
        for i, score in zip(self.ids, self.scores, strict=True):
            mark = "came in" if i in fresh else "kept"
            why = f"score {score:+.3f}" if score is not None else "framework's order"
            lines.append(f"  {mark:8} {i}  (native rank {rank[i]}, {why})")
        lines += [f"  went out {i}  (native rank {rank[i]})" for i in self.went_out]
        return "\n".join(lines)


def choose(pool: Pool, k: int, dials: Dials) -> Choice:
    """Choose up to `k` memories of `pool` by pursuit.

    A memory that cannot be judged (no vector, wrong dimension, NaN, zero) keeps its native place
    if that is among the first `k`; pursuit fills the other places in entry order.

    Raises:
        ValueError: `k` or a dial is out of range.
    """
    P = len(pool)
    budget = min(k, P)
    query, fault = _usable(pool.query, None)
    trouble: dict[str, int] = {}
    judged: list[int] = []
    rows: list[NDArray[np.float32] | NDArray[np.float64]] = []
    if query is None:
        trouble[NO_QUERY if fault == MISSING else str(fault)] = P
    else:
        for i in range(P):
            row, fault = _usable(pool.vectors[i], query.shape[0])
            if row is None:
                trouble[str(fault)] = trouble.get(str(fault), 0) + 1
            else:
                judged.append(i)
                rows.append(row)
    usable = set(judged)
    held = [i for i in range(budget) if i not in usable]
    places = budget - len(held)
    selection: Selection | None = None
    picks: list[tuple[int, float | None]] = []
    if rows and places and query is not None:
        selection = select(
            query,
            np.stack(rows),
            places,
            ridge=dials.ridge,
            discount=dials.discount,
            near_duplicate=dials.near_duplicate,
            stop=dials.stop,
        )
        picks = [
            (judged[i], float(s)) for i, s in zip(selection.indices, selection.scores, strict=True)
        ]
    for i in held:
        picks.insert(min(i, len(picks)), (i, None))
    return Choice(
        tuple(pool.ids),
        tuple(i for i, _ in picks),
        tuple(s for _, s in picks),
        selection,
        tuple(judged),
        trouble,
    )


def _usable(
    vector: Vector | None, dimension: int | None
) -> tuple[NDArray[np.float32] | NDArray[np.float64] | None, str | None]:
    """Return the vector as floats, or None and the cause."""
    if vector is None:
        return None, MISSING
    try:
        row = np.asarray(vector)
        if row.dtype not in (np.float32, np.float64):
            row = row.astype(np.float32 if row.dtype == np.float16 else np.float64)
    except (TypeError, ValueError):
        return None, NOT_NUMBERS
    if row.ndim != 1 or row.size == 0:
        return None, MISSING if row.size == 0 else DIMENSION
    if dimension is not None and row.shape[0] != dimension:
        return None, DIMENSION
    if not np.isfinite(row).all():
        return None, NOT_FINITE
    if not row.any():
        return None, ZERO
    return row, None
