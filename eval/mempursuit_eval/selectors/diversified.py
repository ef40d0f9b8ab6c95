"""Maximal marginal relevance and greedy DPP over the same vectors, from pyversity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyversity import Strategy, diversify

from mempursuit_adapters import Pool
from mempursuit_adapters.triage import Row, first_places, held_places, triage
from mempursuit_core.inputs import Floats, unit, unit_rows


class Diversified:
    """A trade-off between relevance (cosine to the query) and diversity among the picks.

    `weight` is the share of relevance, in [0, 1]: λ of MMR (Carbonell and Goldstein, 1998), θ of
    the greedy DPP (Chen et al., 2018). Memories without a usable vector keep their native place,
    as under pursuit.
    """

    def __init__(self, name: str, strategy: str, weight: float) -> None:
        self.name = name
        self._strategy = Strategy(strategy)
        self._weight = weight

    def pick(self, pool: Pool, k: int, question: str) -> Sequence[int]:
        """Return the positions picked, in the order picked."""
        native = first_places(pool.ids)
        budget = min(k, len(native))
        found = triage(pool, native)
        held = held_places(native, found.judged, budget)
        picks: list[int] = []
        if budget > len(held):
            assert found.query is not None  # or nothing could be judged and all places were held
            relevance, M = _cosines(found.query, np.stack(found.rows))
            picked = diversify(
                M, relevance, budget - len(held), self._strategy, diversity=1 - self._weight
            )
            picks = [found.judged[i] for i in picked.indices]
        for place in held:  # ascending, so each lands where it was
            picks.insert(place, native[place])
        return picks


def _cosines(query: Row, rows: Floats) -> tuple[Floats, Floats]:
    """Return (J,) cosines to the query and the (J, d) unit rows."""
    M = unit_rows(rows, "candidates")
    return M @ unit(query, "query"), M
