"""How an attached Mem0 reads: how many candidates, and with which dials."""

from __future__ import annotations

from dataclasses import dataclass

from mempursuit_adapters.dials import check_pool_size, resolve_dials
from mempursuit_core import AdaptiveStop, Dials
from mempursuit_core.presets import Discount

POOL_SIZE = 200  # candidates of the hybrid search, as in the paper


@dataclass(frozen=True)
class Settings:
    """One memory's pool size and dials."""

    pool_size: int
    dials: Dials

    @classmethod
    def resolve(
        cls,
        pool_size: int = POOL_SIZE,
        preset: str = "paper",
        *,
        discount: Discount | None = None,
        near_duplicate: float | None = None,
        ridge: float | None = None,
        stop: AdaptiveStop | None = None,
    ) -> Settings:
        """Check the arguments of `attach()`, `install()` or a config block.

        Raises:
            ValueError: `pool_size` is below 1, the preset is unknown or a dial is out of range.
        """
        dials = resolve_dials(
            preset, discount=discount, near_duplicate=near_duplicate, ridge=ridge, stop=stop
        )
        return cls(check_pool_size(pool_size), dials)
