"""Turning `attach()`'s keyword arguments into checked dials."""

from __future__ import annotations

from mempursuit_core import AdaptiveStop, Dials, preset
from mempursuit_core.inputs import as_budget, check_dials
from mempursuit_core.presets import PRESETS, Discount


def resolve_dials(
    name: str = "paper",
    *,
    discount: Discount | None = None,
    near_duplicate: float | None = None,
    ridge: float | None = None,
    stop: AdaptiveStop | None = None,
) -> Dials:
    """Return preset `name` with every given dial replaced; None keeps the preset's.

    To leave a dial of `auto` out, start from `paper`: `resolve_dials("paper", discount="auto")`.

    Raises:
        ValueError: the preset is unknown, a dial is out of range, or `stop` is no AdaptiveStop.
    """
    if not isinstance(name, str):
        raise ValueError(f"preset must be one of {sorted(PRESETS)}, got {name!r}")
    if stop is not None and not isinstance(stop, AdaptiveStop):
        raise ValueError(
            f"stop must be an AdaptiveStop, such as AdaptiveStop(tolerance=1e-5), got {stop!r}"
        )
    dials = preset(name).override(
        discount=discount, near_duplicate=near_duplicate, ridge=ridge, stop=stop
    )
    check_dials(dials.ridge, dials.discount, dials.near_duplicate)
    return dials


def check_pool_size(pool_size: int) -> int:
    """Return `pool_size` as an int.

    Raises:
        ValueError: it is not a whole number of at least 1.
    """
    return check_count(pool_size, "pool_size")


def check_count(count: int, name: str) -> int:
    """Return `count`, the argument called `name`, as an int.

    Raises:
        ValueError: it is not a whole number of at least 1.
    """
    try:
        return as_budget(count)
    except ValueError:
        raise ValueError(
            f"{name} must be a whole number of memories, at least 1, got {count!r}"
        ) from None
