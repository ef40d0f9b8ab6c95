"""The arms: ways to choose from one and the same pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mempursuit_adapters import Pool, choose
from mempursuit_core import PRESETS, Dials

ORDER = "order"  # the framework's own ranking: the table's "without"


class Selector(Protocol):
    """Chooses positions in a pool; the first k of them are its choice for every budget k."""

    name: str

    def pick(self, pool: Pool, k: int) -> Sequence[int]:
        """Return up to `k` positions in the order handed back."""
        ...


class NativeOrder:
    """The framework's own top K."""

    name = ORDER

    def pick(self, pool: Pool, k: int) -> Sequence[int]:
        """Return the first `k` positions."""
        return range(min(k, len(pool)))


class Pursuit:
    """MemPursuit with one preset, chosen exactly as the adapters choose."""

    def __init__(self, name: str, dials: Dials) -> None:
        self.name = name
        self._dials = dials

    def pick(self, pool: Pool, k: int) -> Sequence[int]:
        """Return the positions pursuit picks, in entry order."""
        return choose(pool, k, self._dials).positions


def make_selector(name: str) -> Selector:
    """Return the arm called `name`.

    Raises:
        ValueError: there is no such arm.
    """
    if name == ORDER:
        return NativeOrder()
    if name in PRESETS:
        return Pursuit(name, PRESETS[name])
    raise ValueError(f"--selectors: {name!r} is not one of {[ORDER, *PRESETS]}")
