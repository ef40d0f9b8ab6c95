"""A conversation's pools on disk, so that a second run fetches nothing again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mempursuit_adapters import Pool


def save_pools(path: Path, pools: Sequence[Pool]) -> None:
    """Write the pools of one conversation's questions, in question order."""
    ids: dict[str, int] = {}
    vectors: list[np.ndarray] = []
    places: list[int] = []
    dimension = next((len(p.query) for p in pools if p.query is not None), 0)
    missing = np.full(dimension, np.nan, dtype=np.float32)
    for pool in pools:
        for name, vector in zip(pool.ids, pool.vectors, strict=True):
            if str(name) not in ids:
                ids[str(name)] = len(ids)
                usable = vector is not None and len(vector) == dimension
                vectors.append(np.asarray(vector if usable else missing))
            places.append(ids[str(name)])
    part = path.with_name(path.name + ".part.npz")
    np.savez(
        part,
        ids=np.array(list(ids), dtype=np.str_),
        vectors=np.stack(vectors) if vectors else np.empty((0, dimension), np.float32),
        queries=np.array(
            [missing if p.query is None else p.query for p in pools], dtype=np.float64
        ).reshape(len(pools), dimension),
        places=np.array(places, dtype=np.int64),
        sizes=np.array([len(p) for p in pools], dtype=np.int64),
    )
    os.replace(part, path)  # an interrupted run leaves the whole file or none


def load_pools(path: Path) -> list[Pool]:
    """Read what :func:`save_pools` wrote."""
    with np.load(path, allow_pickle=False) as saved:
        ids, vectors, queries = saved["ids"], saved["vectors"], saved["queries"]
        ends = np.cumsum(saved["sizes"])
        pieces = np.split(saved["places"], ends[:-1]) if len(ends) else []
    return [
        Pool(ids=ids[piece].tolist(), vectors=vectors[piece], query=query)
        for piece, query in zip(pieces, queries, strict=True)
    ]
