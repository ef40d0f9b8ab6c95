"""Reading the stored vectors of SimpleMem's entries from LanceDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mempursuit_adapters.pool import Vector


def table_of(vector_store: Any) -> Any:
    """Return the LanceDB table of a SimpleMem vector store, of either version.

    Raises:
        TypeError: the store has none (SimpleMem 0.3.0 with a backend of the user's own).
    """
    table = getattr(vector_store, "table", None)
    if table is None:
        backend = getattr(vector_store, "backend", vector_store)
        raise TypeError(
            f"target must keep its entries in LanceDB, SimpleMem's default store: "
            f"{type(backend).__name__} exposes no table to read stored vectors from"
        )
    return table


def stored_vectors(table: Any, ids: Sequence[str]) -> list[Vector | None]:
    """Return the stored vector of every id, each of shape (d,), in one query; None where missing.

    An id stored more than once gives its first row.
    """
    if not ids:
        return []
    listed = ", ".join("'" + i.replace("'", "''") + "'" for i in ids)
    # No limit: SimpleMem does not keep ids unique, so there may be more rows than ids.
    query = table.search().where(f"entry_id IN ({listed})").limit(None)
    rows = query.select(["entry_id", "vector"]).to_arrow()
    found: dict[str, Vector | None] = {}
    for entry_id, vector in zip(rows["entry_id"].to_pylist(), rows["vector"], strict=True):
        if vector.is_valid:
            found.setdefault(entry_id, vector.values.to_numpy(zero_copy_only=False))
    return [found.get(i) for i in ids]
