"""pgvector: PostgreSQL through psycopg 3 or psycopg2, whichever Mem0 runs on."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from mempursuit_adapters.pool import Vector

HEADER = 4  # bytes before the numbers: how many there are, and two spare ones


def read(store: Any, ids: Sequence[str]) -> Sequence[Vector | None]:
    """Return the vectors of `ids`."""
    sql = importlib.import_module(type(store).__module__).sql  # of the driver Mem0 found
    # The type's own binary form: as text, reading takes ten times as long.
    statement = sql.SQL(
        "SELECT id::text, vector_send(vector) FROM {} WHERE id = ANY(%s::uuid[])"
    ).format(sql.Identifier(store.collection_name))
    with store._get_cursor() as cursor:
        cursor.execute(statement, (list(ids),))
        found = dict(cursor.fetchall())
    return [_floats(found[i]) if found.get(i) is not None else None for i in ids]


def _floats(sent: Any) -> Vector:
    return np.frombuffer(sent, ">f4", offset=HEADER).astype(np.float32)
