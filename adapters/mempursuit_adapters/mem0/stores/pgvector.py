"""pgvector: PostgreSQL through psycopg 3 or psycopg2, whichever Mem0 runs on."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from mempursuit_adapters.pool import Vector


def read(store: Any, ids: Sequence[str]) -> Sequence[Vector | None]:
    """Return the vectors of `ids`."""
    sql = importlib.import_module(type(store).__module__).sql  # of the driver Mem0 found
    statement = sql.SQL("SELECT id::text, vector::text FROM {} WHERE id = ANY(%s::uuid[])").format(
        sql.Identifier(store.collection_name)
    )
    with store._get_cursor() as cursor:
        cursor.execute(statement, (list(ids),))
        found = {i: np.fromstring(text[1:-1], np.float32, sep=",") for i, text in cursor.fetchall()}
    return [found.get(i) for i in ids]
