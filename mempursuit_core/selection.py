"""What a pursuit returns."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.inputs import as_budget

T = TypeVar("T", bound=np.generic)


class Selection:
    """The picked memories in entry order, with the evidence for every pick. Read only.

    Attributes:
        indices: (n,) int64, pool indices in entry order.
        weights: (n,) float64, simplex weights α of the last refit (paper Eq. 6), entry order.
        scores: (n,) float64, the score each pick was chosen by; with the paper's dials the
            utility mᵀr of Eq. 4.
        residual_norms: (n,) float64, ‖r‖ after each refit (Eq. 3).
        gaps: (n,) float64, the Frank–Wolfe certificate g after each refit (Theorem B.2).
    """

    __slots__ = ("_m", "_n", "_path", "_real", "_whole")

    # (3, ≥n): picks, the refit after each, and which picks are members, of which there are m.
    _whole: NDArray[np.int64]
    _real: NDArray[np.float64]  # (4, ≥n): weights, scores, residual norms, gaps
    _path: NDArray[np.float64]  # (≥m, ≥m): row s is α after refit s, over the members so far
    _n: int
    _m: int

    @classmethod
    def of(
        cls,
        whole: NDArray[np.int64],
        real: NDArray[np.float64],
        path: NDArray[np.float64],
        n: int,
        m: int,
    ) -> Selection:
        """Return the Selection that shows these tables."""
        made = object.__new__(cls)
        made._whole, made._real, made._path, made._n, made._m = whole, real, path, n, m
        return made

    @classmethod
    def empty(cls) -> Selection:
        """Return the Selection of an empty pool."""
        return cls.of(np.empty((3, 0), np.int64), np.empty((4, 0)), np.empty((0, 0)), 0, 0)

    @property
    def indices(self) -> NDArray[np.int64]:
        return _locked(self._whole[0, : self._n])

    @property
    def weights(self) -> NDArray[np.float64]:
        return _locked(self._real[0, : self._n])

    @property
    def scores(self) -> NDArray[np.float64]:
        return _locked(self._real[1, : self._n])

    @property
    def residual_norms(self) -> NDArray[np.float64]:
        return _locked(self._real[2, : self._n])

    @property
    def gaps(self) -> NDArray[np.float64]:
        return _locked(self._real[3, : self._n])

    def __len__(self) -> int:
        return self._n

    def prefix(self, k: int) -> Selection:
        """Return the Selection for the smaller budget `k`, with the weights of that prefix's refit.

        The first k picks are the answer for every budget k (paper §3.3); a `k` above the number of
        picks returns everything.

        Raises:
            ValueError: `k` is not a whole number of at least 1.
        """
        n = min(as_budget(k), self._n)
        if n == 0:
            return self
        m = int(self._whole[1, n - 1]) + 1  # each refit brought one member
        real = self._real[:, :n].copy()
        real[0] = 0.0
        real[0, self._whole[2, :m]] = self._path[m - 1, :m]
        return Selection.of(self._whole, real, self._path, n, m)

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


def _locked(view: NDArray[T]) -> NDArray[T]:
    view.flags.writeable = False
    return view
