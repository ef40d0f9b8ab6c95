"""Paired statistics over questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

RESAMPLES = 9_999
SEED = 20_261  # any fixed number: the same run prints the same interval


@dataclass(frozen=True)
class Paired:
    """An arm against the framework's own order, question by question.

    Attributes:
        delta: mean of (with − without), in the metric's unit (rates: 0–1).
        ci_low, ci_high: 95 % percentile bootstrap interval of `delta` over questions.
        p_value: exact two-sided McNemar test on the questions that changed; for a metric with
            values between 0 and 1 this is the sign test, of which McNemar's is the binary case.
        gained, lost: questions that got better and worse.
    """

    n: int
    delta: float
    ci_low: float
    ci_high: float
    p_value: float
    gained: int
    lost: int

    @property
    def in_points(self) -> str:
        """The change of a rate with its interval, e.g. "+1.4 [-0.1, +2.8]"."""
        delta, low, high = (100 * v for v in (self.delta, self.ci_low, self.ci_high))
        return f"{delta:+.1f} [{low:+.1f}, {high:+.1f}]"


def compare_paired(without: ArrayLike, with_: ArrayLike) -> Paired:
    """Compare two arms over the same questions, shape (n,) each.

    Raises:
        ValueError: the shapes differ or there is no question.
    """
    a, b = np.asarray(without, dtype=float), np.asarray(with_, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise ValueError(f"both arms need the same questions, got shapes {a.shape} and {b.shape}")
    change = b - a
    gained, lost = int((change > 0).sum()), int((change < 0).sum())
    low, high = _interval(change)
    p_value = float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return Paired(len(change), float(change.mean()), low, high, p_value, gained, lost)


def _interval(change: np.ndarray) -> tuple[float, float]:
    if np.ptp(change) == 0:  # nothing varies: resampling cannot either
        return float(change[0]), float(change[0])
    found = stats.bootstrap(
        (change,),
        np.mean,
        n_resamples=RESAMPLES,
        method="percentile",
        batch=1_000,
        random_state=np.random.default_rng(SEED),
    ).confidence_interval
    return float(found.low), float(found.high)
