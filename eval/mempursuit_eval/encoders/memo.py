"""Embedding each text once, however many frameworks store it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mempursuit_eval.encoders.base import Encoder


class MemoEncoder:
    """An encoder that remembers every text it has embedded in this process."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}
        self._lock = threading.Lock()
        self.name = encoder.name
        self.dimension = encoder.dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding a text, shape (len(texts), dimension)."""
        with self._lock:
            fresh = [t for t in dict.fromkeys(texts) if t not in self._known]
            if fresh:
                self._known.update(zip(fresh, self._encoder.encode(fresh), strict=True))
            if not texts:
                return np.empty((0, self.dimension), dtype=np.float32)
            return np.stack([self._known[t] for t in texts])
