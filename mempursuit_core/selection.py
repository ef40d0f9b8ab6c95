"""What a pursuit returns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.inputs import as_budget


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The picked memories in entry order, with the evidence for every pick.

    Attributes:
        indices: (n,) int64, pool indices in entry order.
        weights: (n,) float64, simplex weights α of the last refit (paper Eq. 6), entry order.
        scores: (n,) float64, the score each pick was chosen by; with the paper's dials the
            utility mᵀr of Eq. 4.
        residual_norms: (n,) float64, ‖r‖ after each refit (Eq. 3).
        gaps: (n,) float64, the Frank–Wolfe certificate g after each refit (Theorem B.2).
    """

    indices: NDArray[np.int64]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]
    residual_norms: NDArray[np.float64]
    gaps: NDArray[np.float64]
    # α after pick t is row _refits[t] of _path, over the picks numbered _members; others have 0.
    _refits: NDArray[np.int64]
    _members: NDArray[np.int64]
    _path: NDArray[np.float64]

    @classmethod
    def empty(cls) -> Selection:
        """Return the Selection of an empty pool."""
        none = np.empty(0)
        whole = np.empty(0, dtype=np.int64)
        return cls.of(whole, none, none, none, none, whole, whole, np.empty((0, 0)))

    @classmethod
    def of(cls, indices: NDArray[np.int64], *evidence: NDArray[Any]) -> Selection:
        """Return the Selection of these arrays, in the order of the fields, and lock them."""
        made = object.__new__(cls)  # a frozen dataclass's own way takes four times as long
        for name, array in zip(_FIELDS, (indices, *evidence), strict=True):
            array.setflags(write=False)
            made.__dict__[name] = array
        return made

    def __len__(self) -> int:
        return len(self.indices)

    def prefix(self, k: int) -> Selection:
        """Return the Selection for the smaller budget `k`, with the weights of that prefix's refit.

        The first k picks are the answer for every budget k (paper §3.3); a `k` above the number of
        picks returns everything.

        Raises:
            ValueError: `k` is not a whole number of at least 1.
        """
        n = min(as_budget(k), len(self))
        if n == 0:
            return self
        m = int(self._refits[n - 1]) + 1  # each refit brought one member
        weights = np.zeros(n)
        weights[self._members[:m]] = self._path[m - 1, :m]
        return Selection.of(
            self.indices[:n],
            weights,
            self.scores[:n],
            self.residual_norms[:n],
            self.gaps[:n],
            self._refits[:n],
            self._members[:m],
            self._path[:m, :m],
        )

    def __repr__(self) -> str:
        if not len(self):
            return "Selection(empty)"
        shown = ", ".join(map(str, self.indices[:8])) + (", …" if len(self) > 8 else "")
        return (
            f"Selection(n={len(self)}, indices=[{shown}], "
            f"in_use={int((self.weights > 0).sum())}, "
            f"residual={self.residual_norms[-1]:.4f}, gap={self.gaps[-1]:.2e})"
        )

    def __str__(self) -> str:
        lines = [repr(self)]
        if len(self):
            lines.append("  pick   pool   score     weight    residual   gap")
            rows = zip(
                self.indices, self.scores, self.weights, self.residual_norms, self.gaps, strict=True
            )
            lines += [
                f"  {t:>4}  {i:>5}   {u:+.4f}   {w:.4f}    {r:.4f}     {g:.2e}"
                for t, (i, u, w, r, g) in enumerate(rows, 1)
            ]
        return "\n".join(lines)


_FIELDS = tuple(field.name for field in fields(Selection))
