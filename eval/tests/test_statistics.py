"""Paired statistics against values worked out by hand and by another method."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mempursuit_eval.statistics import compare_paired


def test_a_mixed_comparison():
    without = [0, 0, 0, 0, 0, 0, 1, 1, 1, 0]
    with_ = [1, 1, 1, 1, 1, 0, 0, 1, 1, 0]
    found = compare_paired(without, with_)
    assert (found.n, found.gained, found.lost) == (10, 5, 1)
    assert found.delta == pytest.approx(0.4)
    # Exact McNemar on 5 against 1: 2 · (C(6,0) + C(6,1)) / 2⁶ = 14/64.
    assert found.p_value == pytest.approx(14 / 64)
    assert found.ci_low < found.delta < found.ci_high


def test_the_interval_agrees_with_the_normal_approximation_on_many_questions():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1500).astype(float)
    b = np.where(rng.random(1500) < 0.2, 1.0, a)
    found = compare_paired(a, b)
    change = b - a
    half = stats.norm.ppf(0.975) * change.std(ddof=1) / np.sqrt(1500)
    assert found.ci_low == pytest.approx(change.mean() - half, abs=0.003)
    assert found.ci_high == pytest.approx(change.mean() + half, abs=0.003)


def test_fractions_count_by_sign():
    found = compare_paired([0.5, 0.5, 1.0, 0.0], [1.0, 0.75, 0.5, 0.0])
    assert (found.gained, found.lost) == (2, 1)
    assert found.delta == pytest.approx((0.5 + 0.25 - 0.5) / 4)


def test_no_change_is_no_evidence():
    found = compare_paired([1.0, 0.0], [1.0, 0.0])
    assert (found.delta, found.ci_low, found.ci_high, found.p_value) == (0, 0, 0, 1)


def test_the_same_input_gives_the_same_interval():
    a, b = [0, 1, 0, 1, 0], [1, 1, 0, 0, 1]
    assert compare_paired(a, b) == compare_paired(a, b)


@pytest.mark.parametrize(("a", "b"), [([1, 0], [1]), ([], []), ([[1]], [[1]])])
def test_arms_over_other_questions_are_refused(a, b):
    with pytest.raises(ValueError, match="same questions"):
        compare_paired(a, b)
