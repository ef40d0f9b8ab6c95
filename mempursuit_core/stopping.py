"""Adaptive stopping (paper Eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real

NUMERICAL_FLOOR = 1e-12  # the paper's ε_num (Appendix A.1)


@dataclass(frozen=True)
class AdaptiveStop:
    """Stop once the reconstruction has stopped improving (paper Eq. 7, Appendix A.1).

    After each refit, Δ_t = (L_{t−1} − L_t) / max(L_{t−1}, 1e-12) with L_t = ‖r_t‖². The pursuit
    stops after `patience` refits in a row with Δ_t ≤ `tolerance`; everything selected by then is
    returned, and the budget K stays the cap.

    Raises:
        ValueError: `tolerance` is negative or not finite, or `patience` is below 1.
    """

    tolerance: float = 1e-5
    patience: int = 2

    def __post_init__(self) -> None:
        if not (_is(self.tolerance, Real) and isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError(f"tolerance must be a finite number >= 0, got {self.tolerance!r}")
        if not (_is(self.patience, Integral) and self.patience >= 1):
            raise ValueError(f"patience must be an integer >= 1, got {self.patience!r}")


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
