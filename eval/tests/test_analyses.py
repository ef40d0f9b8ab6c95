"""The paper's analyses against the same quantities worked out another way."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import minimize
from typer.testing import CliRunner

from eval.tests.tiny_locomo import tiny
from mempursuit_core import AdaptiveStop, select
from mempursuit_eval.analyses import advantage, budgets, encoders, latency, missing, mmr, overlap
from mempursuit_eval.analyses.distribution import summarise
from mempursuit_eval.analyses.figures import styled
from mempursuit_eval.analyses.reading import Judged, residual
from mempursuit_eval.cli import app
from mempursuit_eval.saved import load_run


def cli(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("analysed")
    (out / "tiny.json").write_text(json.dumps(tiny()), encoding="utf-8")
    done = cli(
        "run", "--data", out / "tiny.json", "--frameworks", "rag", "--k", "1,3", "--out", out,
        "--selectors", "order,paper,auto,mmr:0.5",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def run(folder):
    return load_run(folder)


@pytest.fixture(scope="module")
def pools(run):
    """Question id -> (question, ids, unit query, unit vectors), by plain numpy."""
    found = {}
    for question, pool in run.pools("rag"):
        M, q = np.asarray(pool.vectors, float), np.asarray(pool.query, float)
        M = M / np.linalg.norm(M, axis=1, keepdims=True)
        found[question.id] = (question, list(pool.ids), q / np.linalg.norm(q), M)
    return found


def least_residual(q, M) -> float:
    """Return min ‖q − αM‖ over the simplex by a general solver."""
    n = len(M)
    best = minimize(
        lambda a: 0.5 * np.sum((q - a @ M) ** 2), np.full(n, 1 / n),
        jac=lambda a: -(M @ (q - a @ M)), bounds=[(0, 1)] * n, method="SLSQP",
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1}, options={"ftol": 1e-14},
    )  # fmt: skip
    return float(np.linalg.norm(q - best.x @ M))


def evidence(run, question, ids) -> list[int]:
    return [n for n, m in enumerate(ids) if question.gold_turns & set(run.records[m].evidence)]


def test_the_residual_of_a_set_is_its_simplex_fit():
    rng = np.random.default_rng(2)
    M, q = rng.normal(size=(12, 6)), rng.normal(size=6)
    M, q = M / np.linalg.norm(M, axis=1, keepdims=True), q / np.linalg.norm(q)
    judged = Judged(None, tuple(map(str, range(12))), q, M)
    for subset in ([3], [0, 5], [1, 2, 7, 11], list(range(12))):
        assert residual(judged, subset) == pytest.approx(least_residual(q, M[subset]), abs=1e-6)


def test_advantage_is_equation_28(run, pools):
    expected = []
    for question, ids, q, M in pools.values():
        gold = evidence(run, question, ids)
        if question.gold_sessions:
            expected.append(least_residual(q, M[: len(gold)]) - least_residual(q, M[gold]))
    found = advantage.measure(run, "rag")
    assert found["differences"] == pytest.approx(expected, abs=1e-4)
    assert found["questions"] == 4
    assert found["gold_memories_mean"] == pytest.approx(
        np.mean([len(evidence(run, q, i)) for q, i, _, _ in pools.values() if q.gold_sessions])
    )
    assert found["mean"] == pytest.approx(np.mean(expected), abs=1e-4)
    assert found["positive"] == np.mean([e > 0 for e in expected])


def test_gold_outside_the_pool_is_counted_apart(run):
    bare = {m: replace(r, evidence=()) for m, r in run.records.items()}
    found = advantage.measure(replace(run, records=bare), "rag")
    assert found["questions"] == 0
    assert found["questions_without_gold_in_the_pool"] == 4


def test_missing_is_equation_29(run, pools):
    """The tiny file has two questions over two sessions; each fact is told once but D2:2."""
    expected = {}
    for question, ids, q, M in pools.values():
        gold = evidence(run, question, ids)
        if len(question.gold_sessions) < 2:
            continue
        values = []
        for s in gold:
            fact = question.gold_turns & set(run.records[ids[s]].evidence)
            rest = [
                n for n in gold
                if not fact & set(run.records[ids[n]].evidence)
            ]  # fmt: skip
            if not rest:
                continue
            U = M @ (q - M[s])
            options = []  # any representative of a fact may be drawn
            groups = missing.same_fact(
                rest, {n: question.gold_turns & set(run.records[ids[n]].evidence) for n in rest}
            )
            for picks in np.stack(np.meshgrid(*groups), -1).reshape(-1, len(groups)):
                by_session: dict = {}
                for n in picks:
                    by_session.setdefault(run.records[ids[n]].session, []).append(U[n])
                options.append(np.mean([np.mean(v) for v in by_session.values()]))
            other = max(
                (n for n in range(len(ids)) if n != s and n not in rest), key=lambda n: M[n] @ q
            )
            values.append([o - U[other] for o in options])
        expected[question.id] = (
            np.mean([min(v) for v in values]),
            np.mean([max(v) for v in values]),
        )
    found = missing.measure(run, "rag")
    assert found["questions"] == len(expected) == 2
    for value, (low, high) in zip(found["differences"], expected.values(), strict=True):
        assert low - 1e-5 <= value <= high + 1e-5


def test_memories_that_share_a_turn_state_one_fact():
    facts = {0: {"a"}, 1: {"b"}, 2: {"a", "c"}, 3: {"c", "d"}, 4: {"e"}}
    facts = {n: frozenset(turns) for n, turns in facts.items()}
    groups = missing.same_fact(list(facts), facts)
    assert sorted(groups) == [[0, 2, 3], [1], [4]]
    assert missing.same_fact([], facts) == []


def test_curves_pass_through_the_run_and_the_star_is_the_stop(run, pools):
    found = budgets.measure(run, "rag", "paper", widest=5)
    for row in run.metrics["rows"]:
        if row["category"] == "overall" and row["arm"] in ("order", "paper"):
            for metric in ("session_recall", "complete_coverage"):
                curve = found["curves"][metric]["arms"][row["arm"]]
                assert curve[row["k"] - 1] == pytest.approx(row[metric], abs=1e-5)
    sizes = [
        len(select(q, M, 5, stop=AdaptiveStop()))
        for question, _, q, M in pools.values() if question.gold_sessions
    ]  # fmt: skip
    assert found["adaptive"]["memories_mean"] == pytest.approx(np.mean(sizes), abs=0.005)
    assert found["adaptive"]["cap"] == 5
    assert "adaptive" not in budgets.measure(run, "rag", "mmr:0.5", widest=3)


def test_overlap_and_mmr_agree_with_the_run(run):
    found = overlap.measure(run, "auto")
    assert [(r["k"], r["overlap"]) for r in found["rows"]] == [
        (o["k"], o["overlap"]) for o in run.metrics["overlap"] if o["arm"] == "auto"
    ]
    swept = mmr.measure(run, "rag", weights=(0.5, 1.0))
    rates = {(r["k"], r["arm"]): r for r in run.metrics["rows"] if r["category"] == "overall"}
    for arm in ("order", "paper", "auto", "mmr:0.5"):
        for n, k in enumerate((1, 3)):
            for metric in ("session_recall", "complete_coverage"):
                assert swept["arms"][arm][metric][n] == pytest.approx(
                    rates[k, arm][metric], abs=1e-5
                )
    assert swept["arms"]["mmr:1"] == swept["arms"]["order"], "only relevance is cosine order"
    best = swept["best_mmr"]["session_recall K=3"]
    assert swept["arms"][best]["session_recall"][1] == max(
        swept["arms"][a]["session_recall"][1] for a in ("mmr:0.5", "mmr:1")
    )


def test_encoders_keep_the_pools(run, pools):
    from mempursuit_eval.encoders.wordllama import WordLlamaEncoder

    found = encoders.measure(run, "rag", "paper", ["wordllama:64"])
    rates = {(r["encoder"], r["metric"], r["k"]): r["rate"] for r in found["rows"]}
    own = {(r["k"], r["arm"]): r for r in run.metrics["rows"] if r["category"] == "overall"}
    assert rates["stored", "session_recall", 3] == pytest.approx(
        own[3, "paper"]["session_recall"], abs=1e-5
    )
    small = WordLlamaEncoder(64)
    assert small.encode(["a cat"]).shape == (1, 64)
    recalls = []
    for question, ids, _, _ in pools.values():
        if question.gold_sessions:
            M = small.encode([run.records[m].text for m in ids])
            picks = select(small.encode([question.text])[0], M, 1).indices
            reached = {run.records[ids[i]].session for i in picks}
            recalls.append(len(reached & question.gold_sessions) / len(question.gold_sessions))
    assert rates[small.name, "session_recall", 1] == pytest.approx(np.mean(recalls), abs=1e-5)


def test_latency_times_pursuit_and_any_cross_encoder(run, monkeypatch):
    asked = []

    class CrossEncoder:
        def __init__(self, model):
            pass

        def predict(self, pairs, batch_size, show_progress_bar):
            asked.append((len(pairs), batch_size))
            return [0.0] * len(pairs)

    module = ModuleType("sentence_transformers")
    module.CrossEncoder = CrossEncoder
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    found = latency.measure(run, "rag", 2, 3, models=["tiny/model"], batches=[1, 4])
    arms = [(r["arm"], r.get("batch")) for r in found["rows"]]
    assert arms == [
        *((a, None) for a in latency.VECTOR_ARMS), ("ce:tiny/model", 1), ("ce:tiny/model", 4),
    ]  # fmt: skip
    assert asked == [(5, 1)] * 4 + [(5, 4)] * 4, "one call to warm up, then the three questions"
    for row in found["rows"]:
        assert 0 < row["median_ms"] <= row["p95_ms"]
    assert found["rows"][0]["median_speedup_of_pursuit"] == 1
    assert len(styled(latency.draw, found).axes) == 2


def test_a_summary_by_hand():
    found = summarise([0.2, -0.1, 0.0, 0.3])
    assert (found["questions"], found["mean"], found["median"]) == (4, 0.1, 0.1)
    assert (found["positive"], found["negative"]) == (0.5, 0.25)
    assert found["sign_test_p"] == 1.0
    assert summarise([]) == {"questions": 0, "differences": []}


COMMANDS = {
    "overlap": ["--arm", "auto"], "budgets": ["--widest", "4"], "advantage": [], "missing": [],
    "encoders": ["--embedders", "wordllama:64"], "mmr": [], "latency": ["--questions", "2"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_writes_a_figure_and_its_numbers(name, folder, tmp_path):
    done = cli("analyse", name, folder, *COMMANDS[name], "--to", tmp_path, "--formats", "svg,png")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert found["analysis"] == name
    assert found["setting"].startswith("tiny: 1 conversations, 5 questions")
    root = ET.parse(tmp_path / f"{name}.svg").getroot()
    assert root.tag.endswith("svg")
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    if name != "latency":  # the same run gives the same files
        first = (tmp_path / f"{name}.svg").read_bytes()
        cli("analyse", name, folder, *COMMANDS[name], "--to", tmp_path)
        assert (tmp_path / f"{name}.svg").read_bytes() == first


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["overlap", "nowhere"], "nowhere holds no finished run"),
        (["mmr", None, "--framework", "mem0"], "--framework: 'mem0' is not in this run"),
        (["mmr", None, "--formats", "svg,bmp"], "--formats: ['bmp'] is not among svg, png, pdf"),
        (["encoders", None, "--embedders", "wordllama:7"], "can have 256, 128, 64 dimensions"),
        (["latency", None, "--cross-encoders", "x"], "needs sentence-transformers"),
        (["latency", None, "--batches", "big"], "--batches: sizes must be whole numbers"),
    ],
)
def test_a_wrong_argument_is_named(args, says, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    done = cli("analyse", *(folder if a is None else a for a in args))
    assert done.exit_code == 2
    assert says in done.stderr.replace("\n", " ")
