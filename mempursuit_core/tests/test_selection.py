"""What comes back: frozen, printable, with a prefix for every smaller budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mempursuit_core import Selection, select
from mempursuit_core.tests.pools import clustered

QUERY, POOL = clustered(21, 50, 32)


@pytest.fixture
def found() -> Selection:
    return select(QUERY, POOL, 12)


def test_types(found: Selection) -> None:
    assert found.indices.dtype == np.int64
    for name in ("weights", "scores", "residual_norms", "gaps"):
        values = getattr(found, name)
        assert values.dtype == np.float64
        assert values.shape == (12,)
    assert len(found) == 12


@pytest.mark.parametrize("name", ["indices", "weights", "scores", "residual_norms", "gaps"])
def test_frozen(found: Selection, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(found, name, np.zeros(12))
    with pytest.raises(ValueError, match="read-only"):
        getattr(found, name)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        getattr(found.prefix(3), name)[0] = 0


def test_prefix_of_prefix(found: Selection) -> None:
    twice, once = found.prefix(9).prefix(4), found.prefix(4)
    np.testing.assert_array_equal(twice.weights, once.weights)
    np.testing.assert_array_equal(twice.indices, once.indices)


@pytest.mark.parametrize("k", [12, 13, 10**9])
def test_prefix_beyond_the_picks_is_everything(found: Selection, k: int) -> None:
    np.testing.assert_array_equal(found.prefix(k).indices, found.indices)
    np.testing.assert_array_equal(found.prefix(k).weights, found.weights)


@pytest.mark.parametrize("k", [0, -3, 2.5, "3", None, True])
def test_prefix_of_no_budget(found: Selection, k: Any) -> None:
    with pytest.raises(ValueError, match=r"^k must be"):
        found.prefix(k)


def test_prints_what_matters(found: Selection) -> None:
    text = repr(found)
    shown = ", ".join(map(str, found.indices[:8]))
    assert text.startswith(f"Selection(n=12, indices=[{shown}, …], in_use=")
    assert f"residual={found.residual_norms[-1]:.4f}" in text
    lines = str(found).splitlines()
    assert len(lines) == 14
    assert lines[2].split()[:2] == ["1", str(found.indices[0])]


def test_does_not_hold_the_pool_alive() -> None:
    pool = POOL.copy()
    found = select(QUERY, pool, 3)
    pool[:] = np.nan
    assert np.isfinite(found.prefix(2).weights).all()
