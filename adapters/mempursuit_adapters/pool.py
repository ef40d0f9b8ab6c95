"""The candidate pool of one question, as a framework hands it over."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]] | Sequence[float]


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates in the framework's native order, with the vectors it already has.

    Attributes:
        ids: (P,) the framework's own ids, native order; a repeated id counts at its first place.
        vectors: (P,) stored embeddings, each of dimension d; None where the store has none. One
            (P, d) array is the fastest form.
        query: (d,) the query embedding the framework computed.
        items: (P,) the framework's own objects, handed back untouched; may be left empty.
        texts: (P,) what each memory says, shown by `explain()` only; may be left empty.
    """

    ids: Sequence[Hashable]
    vectors: Sequence[Vector | None] | NDArray[np.floating[Any]]
    query: Vector | None
    items: Sequence[Any] = ()
    texts: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.ids)
