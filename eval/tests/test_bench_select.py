"""The selection benchmark at a tiny size: what it measures, not how long it took."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mempursuit_core import select
from mempursuit_eval.bench.full_gram import select_full_gram
from mempursuit_eval.bench.select import run_select_bench
from mempursuit_eval.bench.select_pools import asked, locomo_stores, synthetic_stores
from mempursuit_eval.datasets import bundled_path
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder


def test_report_of_a_quick_run(tmp_path: Path) -> None:
    report = run_select_bench(tmp_path, quick=True)
    cells, ratios, again, growth, cold, threads = report.tables
    assert [(row["P"], row["K"]) for row in cells.rows] == [(20, 5), (30, 10)]
    for row in cells.rows:
        for name in ("mempursuit", "gemv", "full Gram", "MMR", "DPP"):
            assert 0 < row[name] <= row[f"{name} p95"]
        assert row["mempursuit / gemv"] > 0
    assert ratios.rows is cells.rows
    names = ["mempursuit", "gemv", "full Gram", "MMR", "DPP"]
    assert [row["contender"] for row in again.rows] == names
    assert again.rows[0]["ratio"] == 1.0
    assert all(row["ms"] > 0 for row in again.rows)
    assert growth.rows[0]["P"] == 200
    assert growth.rows[0]["pool_mb"] == pytest.approx(200 * 64 * 4 / 1e6)
    assert [row["what"] for row in cold.rows][-1] == "first select"
    assert [row["threads"] for row in threads.rows] == [1, 2, 4]
    written = json.loads((tmp_path / "select.json").read_text())
    assert written["benchmark"] == "select"
    assert "MemPursuit in gemvs" in (tmp_path / "select.md").read_text()


@pytest.mark.parametrize("source", ["synthetic", "bundled"])
def test_the_yardstick_makes_the_same_picks(source: str) -> None:
    if source == "synthetic":
        stores = synthetic_stores(1, 200, 128)
    else:
        stores = locomo_stores(bundled_path(), WordLlamaEncoder(), "observations")
    for one in asked(stores, 100, 384, 6):
        found = select(one.query, one.pool, 20)
        np.testing.assert_array_equal(select_full_gram(one.query, one.pool, 20), found.indices)
        assert (found.weights > 0).sum() > 3


def test_pools_are_lifted_without_changing_a_cosine() -> None:
    stores = synthetic_stores(1, 50, 64)
    flat, lifted = asked(stores, 30, 64, 2), asked(stores, 30, 256, 2)
    for a, b in zip(flat, lifted, strict=True):
        assert b.pool.shape == (30, 256)
        np.testing.assert_allclose(a.pool @ a.query, b.pool @ b.query, atol=1e-5)
        np.testing.assert_allclose(a.pool @ a.pool.T, b.pool @ b.pool.T, atol=1e-5)
        assert (np.diff(b.pool @ b.query) <= 1e-6).all()
