"""Memories and questions with known vectors, and an encoder that counts its calls."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

DIMENSION = 32
FACTS = 12  # each told four times, so that the plain top K repeats itself
TELLINGS = 4
QUESTIONS = 16
_WORDINGS = (
    "she said {} matters",
    "again about {}, in her own words",
    "it's {}, she'd say",
    '"{}" came up – encore',
)
_KEY = re.compile(r"\b[mq]\d{3}\b")


@dataclass(frozen=True, eq=False)
class Memory:
    """One memory of a store.

    Attributes:
        key: how the suite names it; also the first word of `text`.
        text: what it says; no two are the same.
        vector: (DIMENSION,) float32, what the encoder gives for `text`.
        at: when it was said; no two within two days.
    """

    key: str
    text: str
    vector: NDArray[np.float32]
    at: datetime


@dataclass(frozen=True, eq=False)
class World:
    """A store's worth of memories, and questions that each need several of them."""

    memories: tuple[Memory, ...]
    questions: tuple[str, ...]
    question_vectors: dict[str, NDArray[np.float32]]


def make_world(seed: int = 0) -> World:
    """Return the memories and questions of `seed`; the same ones every time."""
    rng = np.random.default_rng(seed)
    # A share that all vectors have in common keeps every cosine well above 0, as encoders do.
    common, *facts = np.linalg.qr(rng.normal(size=(DIMENSION, FACTS + 1)))[0].T
    memories, start = [], datetime(2023, 5, 1, 9, 30)
    for i in rng.permutation(FACTS * TELLINGS):
        fact, telling = divmod(int(i), TELLINGS)
        n = len(memories)
        key = f"m{n:03d}"
        vector = 0.7 * common + facts[fact] + rng.normal(size=DIMENSION) / 40
        text = f"{key} " + _WORDINGS[telling].format(f"fact {fact}")
        memories.append(Memory(key, text, vector.astype(np.float32), start + timedelta(days=3 * n)))
    vectors = {}
    for n in range(QUESTIONS):
        first, second, third = rng.choice(FACTS, 3, replace=False)
        vector = 0.7 * common + facts[first] + 0.7 * facts[second] + 0.5 * facts[third]
        vectors[f"q{n:03d} what of {first}, {second} and {third}?"] = vector.astype(np.float32)
    return World(tuple(memories), tuple(vectors), vectors)


def keys_in(text: str) -> list[str]:
    """Return the keys of the memories that `text` shows, in its order."""
    return [key for key in _KEY.findall(text) if key.startswith("m")]


@dataclass
class CountingEncoder:
    """The encoder a framework under test is built with.

    It finds a text's vector by the key in it, so a framework may trim or decorate texts.

    Attributes:
        calls: the texts of every call so far.
        broken: while true, every call raises.
    """

    world: World
    calls: list[tuple[str, ...]] = field(default_factory=list)
    broken: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._table = {m.key: m.vector for m in self.world.memories}
        self._table |= {_KEY.findall(q)[0]: v for q, v in self.world.question_vectors.items()}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, shape (n, DIMENSION)."""
        with self._lock:
            self.calls.append(tuple(texts))
        if self.broken:
            raise ConnectionError("the encoder is down")
        return np.stack([self._vector(text) for text in texts])

    def encode_one(self, text: str) -> NDArray[np.float32]:
        """Return the vector of `text`, shape (DIMENSION,)."""
        return self.encode([text])[0]

    def _vector(self, text: str) -> NDArray[np.float32]:
        known = next((self._table[k] for k in _KEY.findall(text) if k in self._table), None)
        if known is not None:
            return known.copy()
        rng = np.random.default_rng(zlib.crc32(text.encode()))
        return rng.normal(size=DIMENSION).astype(np.float32)
