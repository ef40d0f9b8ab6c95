"""The plain baseline on the whole of LoCoMo against figures measured by another implementation."""

from __future__ import annotations

import json

import pytest

from integration_tests.shared import shared
from mempursuit_eval.datasets import load_locomo
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.results import compute_metrics
from mempursuit_eval.run import Options, run

ARMS = {
    "order": "cosine order",
    "paper": "pursuit",
    "auto": "pursuit discount=auto near_duplicate=0.95",
    "mmr:0.5": "mmr lambda=0.5",
    "mmr:0.7": "mmr lambda=0.7",
}
TOLERANCE = 0.2  # points


@pytest.mark.parametrize("memories", ["observations", "turns"])
def test_session_coverage_of_rag_on_locomo(memories, tmp_path):
    reference = json.loads(shared("reference/locomo_coverage_wordllama.json").read_text())
    dataset = load_locomo(shared("data/locomo10.json"))
    options = Options(("rag",), (5, 10, 20), memories, tuple(ARMS), tmp_path)
    metrics = compute_metrics(run(dataset, WordLlamaEncoder(), options))
    for arm, name in ARMS.items():
        for k in options.budgets:
            row = metrics.row("rag", k, arm)
            expected = reference[memories][name][f"K={k}"]
            assert row["n"] == expected["questions"] == 1536
            for metric in ("session_recall", "complete_coverage"):
                assert 100 * row[metric] == pytest.approx(expected[metric], abs=TOLERANCE), (
                    arm, k, metric,
                )  # fmt: skip


def test_the_files_counts(tmp_path):
    dataset = load_locomo(shared("data/locomo10.json"))
    by_category = {c: sum(q.category == c for q in dataset.questions) for c in dataset.categories}
    assert by_category == {
        "multi-hop": 282, "temporal": 321, "open-domain": 96, "single-hop": 841,
    }  # fmt: skip
    assert len(dataset.conversations) == 10
    assert sum(len(c.memories["turns"]) for c in dataset.conversations) == 5882
    assert sum(len(c.memories["observations"]) for c in dataset.conversations) == 2541
    assert all(q.gold_turns for q in dataset.questions if q.gold_sessions)
