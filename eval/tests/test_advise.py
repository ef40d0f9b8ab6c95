"""Advice on stores made so that pursuit helps, hurts, or changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eval.tests.tiny_locomo import tiny
from mempursuit_eval.advise import advise, asked_of_run, asked_of_store
from mempursuit_eval.advise.geometry import measure_geometry
from mempursuit_eval.cli import app
from mempursuit_eval.saved import load_run

D = 64


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


def noisy(v: np.ndarray, rng: np.random.Generator, amount: float) -> np.ndarray:
    return unit(v + amount * unit(rng.normal(size=D)))


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def store(folder: Path, make, questions: int = 40, *, gold: bool = True) -> Path:
    """Write a store of one conversation a question, as `make(rng)` lays it out.

    `make` returns the question's vector, its memories' vectors, and which of them are gold.
    """
    rng = np.random.default_rng(11)
    memories, asked = [], []
    for n in range(questions):
        query, vectors, needed = make(rng)
        ids = [f"{n}/{i}" for i in range(len(vectors))]
        memories += [
            {"id": i, "text": f"memory {i}", "embedding": v.tolist(), "conversation": n}
            for i, v in zip(ids, vectors, strict=True)
        ]
        asked.append({"text": f"question {n}", "embedding": query.tolist(), "conversation": n})
        if gold:
            asked[-1]["gold"] = [ids[i] for i in needed]
    folder.mkdir(exist_ok=True)
    write(folder / "memories.jsonl", memories)
    write(folder / "questions.jsonl", asked)
    return folder


def two_facts(rng):
    """A question about two facts: one is told twelve times over, the other once."""
    a, b = unit(rng.normal(size=D)), unit(rng.normal(size=D))
    query = unit(1.2 * a + b)
    told = [noisy(a, rng, 0.25) for _ in range(12)]
    others = [unit(rng.normal(size=D)) for _ in range(30)]
    return query, [*told, noisy(b, rng, 0.25), *others], [0, 12]


def all_mentions(rng):
    """A question that needs every mention of one thing, beside long messages about all sorts."""
    topic, common = unit(rng.normal(size=D)), unit(rng.normal(size=D))
    mentions = [noisy(unit(0.5 * topic + common), rng, 0.3) for _ in range(6)]
    others = [noisy(unit(0.3 * topic + common), rng, 1.0) for _ in range(30)]
    return topic, [*mentions, *others], list(range(6))


def small(rng):
    """Three memories: nothing to leave out."""
    return unit(rng.normal(size=D)), [unit(rng.normal(size=D)) for _ in range(3)], [0]


def no_encoder():
    raise AssertionError("the store has embeddings")


def advice(folder: Path, budgets=(5, 8)):
    files = folder / "memories.jsonl", folder / "questions.jsonl"
    return advise(asked_of_store(*files, 200, no_encoder), budgets)


def test_on_where_a_fact_was_crowded_out(tmp_path):
    found = advice(store(tmp_path, two_facts))
    assert found.preset in ("paper", "auto")
    assert found.recall[5] < 0.6
    assert found.change[found.preset, 5].delta > 0.3
    assert found.kept["paper", 5] <= 0.8, "b came in"


def test_off_where_it_loses_evidence(tmp_path):
    found = advice(store(tmp_path, all_mentions))
    assert found.overall["paper"].ci_high < 0, "the store is made to hurt"
    assert found.preset is None
    assert "loses evidence here" in found.why


def test_without_gold_only_the_risk_is_read(tmp_path):
    risky = advice(store(tmp_path / "a", all_mentions, gold=False))
    assert risky.geometry.crowding > 0
    assert risky.preset is None
    fine = advice(store(tmp_path / "b", two_facts, gold=False))
    assert fine.geometry.crowding < 0
    assert fine.preset == "auto"
    for found in (risky, fine):
        assert found.with_gold == 0
        assert found.change == {}
        assert any("nobody can say" in caution for caution in found.cautions)


def test_a_handful_of_questions_without_gold_is_too_few(tmp_path):
    found = advice(store(tmp_path, all_mentions, questions=6, gold=False))
    assert found.preset is None
    assert found.why.startswith("too few to judge: 6 questions")


def test_off_where_there_is_nothing_to_choose(tmp_path):
    found = advice(store(tmp_path, small, gold=False))
    assert found.preset is None
    assert "the same memories" in found.why
    measured = advice(store(tmp_path, small))
    assert measured.preset is None
    assert "no difference is shown" in measured.why


def test_the_advice_holds_on_questions_it_has_not_seen(tmp_path):
    for n, make in enumerate((two_facts, all_mentions)):
        folder = store(tmp_path / str(n), make, questions=80)
        asked = [json.loads(line) for line in (folder / "questions.jsonl").open()]
        seen, unseen = (
            advise(
                asked_of_store(
                    folder / "memories.jsonl",
                    write(folder / f"{half}.jsonl", asked[half::2]),
                    200,
                    no_encoder,
                ),
                (5, 8),
            )
            for half in (0, 1)
        )
        assert (seen.preset is None) == (make is all_mentions)
        change = unseen.overall[seen.preset or "paper"]
        assert change.ci_low > 0 if seen.preset else change.ci_high < 0


def test_a_budget_at_which_the_preset_loses_is_named():
    from mempursuit_eval.advise.advice import _cautions
    from mempursuit_eval.statistics import compare_paired

    lost = compare_paired(np.ones(30), np.zeros(30))
    (caution, _) = _cautions("auto", {("auto", 5): lost, ("paper", 5): lost}, 30)
    assert caution == "not at K = 5: there it loses -100.0 [-100.0, -100.0] points."


def test_geometry_of_known_pools():
    q = np.eye(4)[0]
    apart = measure_geometry([(q, np.eye(4)[:3] * 5)], 3)
    assert (apart.best, apart.nearest, apart.pairwise) == pytest.approx((1, 0, 0))
    assert apart.crowding == pytest.approx(-1)
    assert apart.effective_rank == pytest.approx(3)
    assert apart.near_duplicates == 0
    same = measure_geometry([(q, np.ones((3, 4)))], 3)
    assert (same.best, same.nearest, same.pairwise) == pytest.approx((0.5, 1, 1))
    assert same.effective_rank == pytest.approx(1)
    assert same.near_duplicates == 1
    assert same.crowding == pytest.approx(0.5)
    repeats = measure_geometry([(q, np.vstack([np.ones((3, 4)), np.eye(4), -np.eye(4)]))], 3)
    assert repeats.near_duplicates == 1
    assert repeats.crowding < 0, "repeats in the top K are what pursuit is for"
    with pytest.raises(ValueError, match="two memories"):
        measure_geometry([(q, np.ones((1, 4)))], 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("advised")
    write(out / "tiny.json", [])
    (out / "tiny.json").write_text(json.dumps(tiny()), encoding="utf-8")
    command = [
        "run",
        "--data",
        out / "tiny.json",
        "--frameworks",
        "rag",
        "--k",
        "1,2",
        "--out",
        out,
    ]
    assert CliRunner().invoke(app, [str(word) for word in command]).exit_code == 0
    return out


def test_a_runs_change_is_that_of_its_metrics(folder):
    run = load_run(folder)
    found = advise(asked_of_run(run, "rag"), run.budgets)
    assert (found.questions, found.with_gold) == (5, 4)
    for row in run.metrics["paired"]:
        if row["metric"] == "session_recall":
            pair = found.change[row["arm"], row["k"]]
            assert (pair.delta, pair.ci_low, pair.ci_high) == pytest.approx(
                (row["delta"], row["ci_low"], row["ci_high"])
            )
    for row in run.metrics["overlap"]:
        assert found.kept[row["arm"], row["k"]] == pytest.approx(row["overlap"])


def test_the_command_reads_runs_and_stores(folder, tmp_path):
    done = CliRunner().invoke(app, ["advise", str(folder), "--k", "1,2"])
    assert done.exit_code == 0, done.output
    assert "Advice: leave it off" in done.output
    assert "5 questions, 4 with gold evidence" in " ".join(done.output.split())
    made = store(tmp_path, two_facts)
    done = CliRunner().invoke(app, ["advise", str(made), "--k", "5"])
    assert "Advice: switch it on with preset=" in done.output
    # A run's own memories and questions are a store too, embedded here.
    for name in ("memories", "questions"):
        (tmp_path / f"{name}.jsonl").write_bytes((folder / f"{name}.jsonl").read_bytes())
    asked = [json.loads(line) for line in (tmp_path / "questions.jsonl").open()]
    write(
        tmp_path / "q.jsonl", [{k: v for k, v in q.items() if k != "conversation"} for q in asked]
    )
    again = CliRunner().invoke(
        app,
        ["advise", str(tmp_path / "memories.jsonl"), "--questions", str(tmp_path / "q.jsonl"),
         "--k", "1,2"],
    )  # fmt: skip
    first = CliRunner().invoke(app, ["advise", str(folder), "--k", "1,2"])
    assert again.output.split("Pools:")[1] == first.output.split("Pools:")[1]


GOOD = {"text": "a", "embedding": [1.0, 0.0], "id": "a"}


@pytest.mark.parametrize(
    ("memories", "questions", "says"),
    [
        (None, [GOOD], "there is no file"),
        (["{"], [GOOD], "cannot be read as JSON Lines"),
        ([GOOD, {"txt": "b"}], [GOOD], 'memories.jsonl, line 2: needs an object with a "text"'),
        ([], [GOOD], "memories.jsonl has no line"),
        ([GOOD, GOOD], [GOOD], "every id must be there once"),
        ([GOOD, {"text": "b"}], [GOOD], "has an embedding, or none has"),
        ([GOOD], [{"text": "q", "embedding": [1.0]}], "embedded alike"),
        ([{**GOOD, "embedding": [0.0, 0.0]}], [GOOD], "an embedding cannot be used"),
        ([{**GOOD, "embedding": ["x"]}], [GOOD], "must be lists of numbers"),
        ([GOOD], [{**GOOD, "gold": ["z"]}], "line 1: no memory has the id 'z'"),
        ([GOOD], [{**GOOD, "gold_sessions": [7]}], "no memory has the session 7"),
        ([{**GOOD, "conversation": 1}], [{**GOOD, "conversation": 2}], "has conversation 2"),
        ([GOOD], [GOOD], "no question has two memories"),
    ],
)
def test_a_wrong_file_is_named(memories, questions, says, tmp_path):
    for name, rows in (("memories", memories), ("questions", questions)):
        if rows is not None:
            lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
            (tmp_path / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines))
    done = CliRunner().invoke(app, ["advise", str(tmp_path)])
    assert done.exit_code == 2
    assert says in done.stderr.replace("\n", " ")


def test_wrong_options_are_named(folder):
    done = CliRunner().invoke(app, ["advise", str(folder), "--framework", "mem0"])
    assert "--framework: 'mem0' is not in this run: rag" in done.stderr
    done = CliRunner().invoke(app, ["advise", str(folder), "--k", "0"])
    assert "--k and --pool must be whole numbers" in done.stderr
