"""The dials of the pursuit, bundled and named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mempursuit_core.stopping import AdaptiveStop

Discount = float | Literal["auto"]


@dataclass(frozen=True)
class Dials:
    """Everything :func:`mempursuit_core.select` can be told besides query, pool and budget."""

    discount: Discount = 1.0
    near_duplicate: float | None = None
    ridge: float = 1e-10
    stop: AdaptiveStop | None = None

    def override(
        self,
        *,
        discount: Discount | None = None,
        near_duplicate: float | None = None,
        ridge: float | None = None,
        stop: AdaptiveStop | None = None,
    ) -> Dials:
        """Return a copy in which every argument that is not None replaces the bundled value."""
        return Dials(
            discount=self.discount if discount is None else discount,
            near_duplicate=self.near_duplicate if near_duplicate is None else near_duplicate,
            ridge=self.ridge if ridge is None else ridge,
            stop=self.stop if stop is None else stop,
        )


PRESETS: dict[str, Dials] = {
    "paper": Dials(),
    "auto": Dials(discount="auto", near_duplicate=0.95),
}


def preset(name: str) -> Dials:
    """Return the preset called `name`.

    Raises:
        ValueError: there is no such preset.
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise ValueError(f"preset must be one of {sorted(PRESETS)}, got {name!r}") from None
