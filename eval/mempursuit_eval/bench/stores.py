"""Synthetic memories, questions and vectors in the likeness of a real store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from mempursuit_eval.datasets import Dataset, bundled_path, load_dataset
from mempursuit_eval.encoders.base import Encoder
from mempursuit_eval.records import MemoryRecord

PER_SESSION = 20  # memories of one session, and so of one date
DROPPED = 0.15  # share of words a retelling leaves out
JOINED = 0.5  # share of retellings that go on with half of another memory

_FIRST_DAY = datetime(2020, 1, 1, 9)


def synthetic_memories(n: int, seed: int = 0) -> list[MemoryRecord]:
    """Return `n` memories that retell those of the bundled data set in other words.

    Each bundled memory is so the centre of a cluster of near repeats, as facts are in a store that
    has been written to for long. The same arguments give the same memories.
    """
    rng = np.random.default_rng(seed)
    told = [r for c in _bundled().conversations for r in c.memories["observations"]]
    memories = []
    for i in range(n):
        base, other = (told[j] for j in rng.integers(len(told), size=2))
        words = [word for word in base.text.split() if rng.random() >= DROPPED]
        if rng.random() < JOINED:
            words += other.text.split()[: len(other.text.split()) // 2]
        session = i // PER_SESSION
        memories.append(
            MemoryRecord(
                id=f"m{i}",
                text=" ".join(words) or base.text,
                speaker=base.speaker,
                session=session + 1,
                when=_FIRST_DAY + timedelta(days=session),
            )
        )
    return memories


def bundled_questions(n: int) -> list[str]:
    """Return `n` questions of the bundled data set; all it has if those are fewer."""
    return [q.text for q in _bundled().questions][:n]


class LiftedEncoder:
    """`encoder` carried into a higher dimension with every distance and angle kept."""

    def __init__(self, encoder: Encoder, dimension: int) -> None:
        self._encoder = encoder
        self._map = isometry(encoder.dimension, dimension).astype(np.float32)
        self.dimension = dimension
        self.name = f"{encoder.name}, lifted isometrically to {dimension}-d"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding a text, shape (len(texts), dimension)."""
        return self._encoder.encode(texts) @ self._map


def isometry(low: int, high: int, seed: int = 0) -> NDArray[np.float64]:
    """Return a dense (low, high) matrix with orthonormal rows.

    Raises:
        ValueError: `high` is below `low`.
    """
    if high < low:
        raise ValueError(f"--dimension must be at least the encoder's own {low}, got {high}")
    dense = np.random.default_rng(seed).standard_normal((high, low))
    columns, _ = np.linalg.qr(dense)
    return np.ascontiguousarray(columns.T)


def _bundled() -> Dataset:
    return load_dataset(bundled_path())
