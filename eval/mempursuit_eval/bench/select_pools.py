"""Pools to time the selection on: LoCoMo's embeddings, or clustered synthetic ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_eval.bench.stores import isometry
from mempursuit_eval.datasets import load_locomo
from mempursuit_eval.encoders import Encoder

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Asked:
    """One question with its pool, most similar first as a vector search hands it over."""

    query: Vectors  # (d,)
    pool: Vectors  # (P, d)


@dataclass(frozen=True, eq=False)
class Store:
    """Embedded memories and questions of one conversation, unit length, one dimension."""

    memories: Vectors
    questions: Vectors


def locomo_stores(data: Path, encoder: Encoder, kind: str = "turns") -> list[Store]:
    """Embed every conversation of a file in LoCoMo's format; `kind` is a key of its memories."""
    return [
        Store(
            _unit(encoder.encode([m.text for m in talk.memories[kind]])),
            _unit(encoder.encode([question.text for question in talk.questions])),
        )
        for talk in load_locomo(data).conversations
    ]


def synthetic_stores(seed: int, size: int, dimension: int, stores: int = 4) -> list[Store]:
    """Draw stores in which facts repeat in other words: clusters around a shared direction."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(stores):
        clusters = max(8, size // 12)
        centres = _unit(_noise(rng, clusters, dimension) + _noise(rng, 1, dimension))
        facts = centres[rng.integers(clusters, size=size)]
        memories = _unit(facts + 0.6 * _noise(rng, size, dimension))
        asked = np.stack([centres[rng.choice(clusters, 4)].sum(axis=0) / 2 for _ in range(50)])
        made.append(Store(memories, _unit(asked + _noise(rng, 50, dimension))))
    return made


def asked(stores: list[Store], P: int, dimension: int, n: int, seed: int = 0) -> list[Asked]:
    """Return n questions with their pools of P, lifted isometrically to `dimension`.

    Stores smaller than P are filled up from the others.
    """
    rng = np.random.default_rng(seed)
    lift = isometry(stores[0].memories.shape[1], dimension)
    return list(islice(_draw(stores, P, lift, rng), n))


def _draw(
    stores: list[Store], P: int, lift: NDArray[Any], rng: np.random.Generator
) -> Iterator[Asked]:
    while True:
        own = int(rng.integers(len(stores)))
        memories = stores[own].memories
        if len(memories) < P:
            others = (store.memories for i, store in enumerate(stores) if i != own)
            memories = np.concatenate([memories, *others])
        if len(memories) < P:
            raise ValueError(f"there are only {len(memories)} memories, too few for a pool of {P}")
        query = stores[own].questions[rng.integers(len(stores[own].questions))]
        nearest = np.argsort(-(memories @ query), kind="stable")[:P]
        yield Asked(
            np.ascontiguousarray(query @ lift, dtype=np.float32),
            np.ascontiguousarray(memories[nearest] @ lift, dtype=np.float32),
        )


def _noise(rng: np.random.Generator, n: int, dimension: int) -> Vectors:
    return _unit(rng.standard_normal((n, dimension), dtype=np.float32))


def _unit(vectors: NDArray[Any]) -> Vectors:
    values: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return values
