"""Chroma: local or a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mempursuit_adapters.pool import Vector


def read(store: Any, ids: Sequence[str]) -> Sequence[Vector | None]:
    """Return the vectors of `ids`."""
    got = store.collection.get(ids=list(ids), include=["embeddings"])
    found = dict(zip(got["ids"], got["embeddings"], strict=True))
    return [found.get(i) for i in ids]
