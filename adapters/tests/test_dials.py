"""`resolve_dials` and `check_pool_size`: clear errors at attach time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mempursuit_adapters.dials import check_pool_size, resolve_dials
from mempursuit_core import AdaptiveStop, Dials


def test_presets_and_overrides() -> None:
    stop = AdaptiveStop(tolerance=1e-3)
    assert resolve_dials() == Dials()
    assert resolve_dials("auto") == Dials(discount="auto", near_duplicate=0.95)
    assert resolve_dials("auto", near_duplicate=0.9).near_duplicate == 0.9
    assert resolve_dials("auto", discount=0.0).discount == 0.0
    assert resolve_dials("paper", discount="auto") == Dials(discount="auto")
    assert resolve_dials(ridge=0.0, stop=stop) == Dials(ridge=0.0, stop=stop)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"name": "papper"}, "preset"),
        ({"name": ["paper"]}, "preset"),
        ({"name": None}, "preset"),
        ({"discount": 1.5}, "discount"),
        ({"discount": float("nan")}, "discount"),
        ({"discount": "none"}, "discount"),
        ({"near_duplicate": 2}, "near_duplicate"),
        ({"near_duplicate": True}, "near_duplicate"),
        ({"ridge": -1e-9}, "ridge"),
        ({"ridge": "0"}, "ridge"),
        ({"stop": True}, "stop"),
        ({"stop": {"tolerance": 1e-5}}, "stop"),
    ],
)
def test_a_wrong_dial_is_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named} must be"):
        resolve_dials(**arguments)


def test_pool_size() -> None:
    assert check_pool_size(200) == 200
    assert type(check_pool_size(np.int64(60))) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("pool_size", [0, -5, 2.5, "200", None, True, float("nan"), float("inf")])
def test_a_wrong_pool_size_is_named(pool_size: Any) -> None:
    with pytest.raises(ValueError, match=r"^pool_size must be a whole number"):
        check_pool_size(pool_size)
