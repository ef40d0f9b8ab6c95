"""One LanceDB query for the vectors of all ids, whatever the ids look like."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from mempursuit_adapters.simplemem.stored_vectors import stored_vectors, table_of

NASTY = ["o'brien", "a''b", 'say "hi"', "back\\slash", "') OR ('1'='1", "--", "é∂\n", ""]


def _table(folder: Path, rows: list[tuple[str, list[float] | None]]) -> Any:
    schema = pa.schema([("entry_id", pa.string()), ("vector", pa.list_(pa.float32(), 2))])
    table = lancedb.connect(str(folder)).create_table("t", schema=schema)
    table.add(pa.table({"entry_id": [i for i, _ in rows], "vector": [v for _, v in rows]}, schema))
    return table


class _CountingTable:
    def __init__(self, table: Any) -> None:
        self._table = table
        self.searches = 0

    def search(self, *args: Any) -> Any:
        self.searches += 1
        return self._table.search(*args)


def test_ids_with_quotes_find_their_own_vector_in_one_query(tmp_path: Path) -> None:
    table = _CountingTable(
        _table(tmp_path, [(name, [float(n), 1.0]) for n, name in enumerate(NASTY)])
    )

    wanted = list(reversed(NASTY))
    vectors = stored_vectors(table, wanted)

    assert [v[0] for v in vectors if v is not None] == [float(NASTY.index(i)) for i in wanted]
    assert table.searches == 1


def test_an_id_that_smells_of_sql_selects_nothing_else(tmp_path: Path) -> None:
    table = _table(tmp_path, [("a", [1.0, 2.0]), ("b", [3.0, 4.0])])

    assert stored_vectors(table, ["x') OR ('1'='1"]) == [None]


def test_missing_and_null_vectors_are_none(tmp_path: Path) -> None:
    table = _table(tmp_path, [("a", [1.0, 2.0]), ("b", None)])

    first, second, third = stored_vectors(table, ["a", "b", "gone"])

    assert np.asarray(first).tolist() == [1.0, 2.0]
    assert second is None
    assert third is None


def test_more_rows_than_ids_lose_no_id(tmp_path: Path) -> None:
    rows = [("twice", [1.0, 0.0])] * 30 + [("once", [0.0, 1.0])]

    vectors = stored_vectors(_table(tmp_path, rows), ["twice", "once"])

    assert [np.asarray(v).tolist() for v in vectors] == [[1.0, 0.0], [0.0, 1.0]]


def test_an_id_stored_twice_gives_its_first_row(tmp_path: Path) -> None:
    table = _table(tmp_path, [("a", [1.0, 0.0]), ("b", [0.5, 0.5]), ("a", [0.0, 1.0])])

    assert [np.asarray(v).tolist() for v in stored_vectors(table, ["a"])] == [[1.0, 0.0]]


def test_hundreds_of_ids_come_back_in_the_order_asked(tmp_path: Path) -> None:
    n = 300
    table = _table(tmp_path, [(f"e{i}", [float(i), 1.0]) for i in range(n)])

    vectors = stored_vectors(table, [f"e{i}" for i in reversed(range(n))])

    assert [v[0] for v in vectors if v is not None] == [float(i) for i in reversed(range(n))]


def test_no_ids_ask_nothing() -> None:
    assert stored_vectors(None, []) == []


def test_a_store_without_a_table_is_refused_by_name() -> None:
    store = SimpleNamespace(table=None, backend=SimpleNamespace())

    with pytest.raises(TypeError, match=r"LanceDB.*SimpleNamespace"):
        table_of(store)
