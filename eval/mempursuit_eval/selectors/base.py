"""What an arm is, and the two kinds every run has: native order and pursuit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mempursuit_adapters import Pool, choose
from mempursuit_adapters.triage import first_places
from mempursuit_core import Dials

ORDER = "order"  # the framework's own ranking: the table's "without"


class SelectorUnavailableError(RuntimeError):
    """An arm's package or model is missing; the message says what to do."""


class Selector(Protocol):
    """Chooses positions in a pool; the first k of them are its choice for every budget k."""

    name: str

    def pick(self, pool: Pool, k: int, question: str) -> Sequence[int]:
        """Return up to `k` positions in the order handed back.

        `question` and `pool.texts` are for arms that read text instead of vectors.
        """
        ...


class NativeOrder:
    """The framework's own top K."""

    name = ORDER

    def pick(self, pool: Pool, k: int, question: str) -> Sequence[int]:
        """Return the first `k` positions; a repeated id counts at its first place."""
        return first_places(pool.ids)[:k]


class Pursuit:
    """MemPursuit with one set of dials, chosen exactly as the adapters choose."""

    def __init__(self, name: str, dials: Dials) -> None:
        self.name = name
        self.dials = dials

    def pick(self, pool: Pool, k: int, question: str) -> Sequence[int]:
        """Return the positions pursuit picks, in entry order."""
        return choose(pool, k, self.dials).positions
