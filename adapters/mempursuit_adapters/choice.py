"""Choosing from a pool in which some memories may have no usable vector."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mempursuit_adapters.pool import Pool
from mempursuit_adapters.triage import aligned, first_places, held_places, triage
from mempursuit_core import Dials, Selection, select
from mempursuit_core.inputs import as_budget, check_dials

SHOWN_TEXT = 80  # characters of a memory shown by explain()


@dataclass(frozen=True, eq=False)
class Choice:
    """What one read chose, and why.

    Attributes:
        pool_ids: (P,) the pool in native order.
        positions: (n,) chosen positions in the pool, in the order handed back; n ≤ budget ≤ P.
        scores: (n,) the score each pick was chosen by; None where the framework's order decided.
        selection: the pursuit over the memories that could be judged; None if there were none.
        judged: (J,) pool positions `selection.indices` refers to.
        budget: how many memories the framework itself would hand back from this pool.
        trouble: cause -> number of memories that kept the framework's order because of it.
        texts: (P,) what each memory says, or empty.
    """

    pool_ids: tuple[Hashable, ...]
    positions: tuple[int, ...]
    scores: tuple[float | None, ...]
    selection: Selection | None
    judged: tuple[int, ...]
    budget: int
    trouble: dict[str, int] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The chosen ids in the order handed back."""
        return tuple(self.pool_ids[i] for i in self.positions)

    @property
    def came_in(self) -> tuple[Hashable, ...]:
        """Chosen ids that the framework's own top K leaves out, in the order handed back."""
        native = set(self._native())
        return tuple(self.pool_ids[i] for i in self.positions if i not in native)

    @property
    def went_out(self) -> tuple[Hashable, ...]:
        """Ids of the framework's own top K that were not chosen, in native order."""
        chosen = set(self.positions)
        return tuple(self.pool_ids[i] for i in self._native() if i not in chosen)

    def explain(self) -> str:
        """Say what changed against the framework's own top K, one memory a line."""
        native = self._native()
        came_in, chosen = set(self.positions) - set(native), set(self.positions)
        lines = [f"{len(self.positions)} of {len(self.pool_ids)} memories, in entry order:"]
        for i, score in zip(self.positions, self.scores, strict=True):
            mark = "came in" if i in came_in else "kept"
            why = f"score {score:+.3f}" if score is not None else "framework's order"
            lines.append(self._line(mark, i, why))
        lines += [self._line("went out", i) for i in native if i not in chosen]
        lines += [f"  could not judge {n} memories: {why}" for why, n in self.trouble.items()]
        return "\n".join(lines)

    def _native(self) -> list[int]:
        """Return the positions of the framework's own top K."""
        return first_places(self.pool_ids)[: self.budget]

    def _line(self, mark: str, i: int, why: str = "") -> str:
        rank = f"native rank {i + 1}" + (f", {why}" if why else "")
        text = " ".join(str(self.texts[i]).split()) if self.texts else ""
        if len(text) > SHOWN_TEXT:
            text = text[: SHOWN_TEXT - 1] + "…"
        return f"  {mark:8} {self.pool_ids[i]}  ({rank})" + (f"  {text}" if text else "")


def choose(pool: Pool, k: int, dials: Dials) -> Choice:
    """Choose up to `k` memories of `pool` by pursuit.

    A memory that cannot be judged (no vector, wrong dimension, NaN, zero) keeps its native place
    if that is among the first `k`; pursuit fills the other places in entry order. Whatever the
    pool holds, no position comes twice and no more than `k` come back.

    Raises:
        ValueError: `k` or a dial is out of range.
    """
    budget = as_budget(k)
    check_dials(dials.ridge, dials.discount, dials.near_duplicate)
    ids = tuple(pool.ids)
    native = first_places(ids)
    budget = min(budget, len(native))
    judged, held, trouble = native, list[int](), dict[str, int]()
    selection = None
    if len(native) == len(ids) > 0 and aligned(pool):
        # A sound pool needs no row-by-row look: the core checks every row as it normalises it.
        selection = _try_pursue(pool.query, pool.vectors, budget, dials)
    if selection is None and native:
        found = triage(pool, native)
        judged, trouble = found.judged, dict(found.trouble)
        held = held_places(native, judged, budget)
        if budget > len(held):
            selection = _pursue(found.query, np.stack(found.rows), budget - len(held), dials)
    picks: list[tuple[int, float | None]] = []
    if selection is not None:
        chosen = zip(selection.indices.tolist(), selection.scores.tolist(), strict=True)
        picks = [(judged[i], score) for i, score in chosen]
    for place in held:  # ascending, so each lands where it was; after a stop, at the end
        picks.insert(place, (native[place], None))
    return Choice(
        ids,
        tuple(i for i, _ in picks),
        tuple(score for _, score in picks),
        selection,
        tuple(judged),
        budget,
        trouble,
        _texts(pool, len(ids)),
    )


def _try_pursue(query: Any, candidates: Any, k: int, dials: Dials) -> Selection | None:
    try:
        return _pursue(query, candidates, k, dials)
    except Exception:  # triage finds out which memory it was
        return None


def _pursue(query: Any, candidates: Any, k: int, dials: Dials) -> Selection:
    return select(
        query,
        candidates,
        k,
        ridge=dials.ridge,
        discount=dials.discount,
        near_duplicate=dials.near_duplicate,
        stop=dials.stop,
    )


def _texts(pool: Pool, size: int) -> tuple[str, ...]:
    try:
        texts = tuple(pool.texts)
    except TypeError:
        return ()
    return texts if len(texts) == size else ()
