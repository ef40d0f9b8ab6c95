"""The run command end to end on the plain baseline: files, figures, resuming."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eval.tests.tiny_locomo import tiny
from mempursuit_adapters import Pool
from mempursuit_eval import run as run_module
from mempursuit_eval.backbones.rag import RagBackbone
from mempursuit_eval.cli import app
from mempursuit_eval.datasets import load_locomo
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.metrics import coverage
from mempursuit_eval.pools import load_pools, save_pools
from mempursuit_eval.results import compute_metrics
from mempursuit_eval.run import Options, run


@pytest.fixture(scope="module")
def encoder():
    return WordLlamaEncoder()


@pytest.fixture
def data(tmp_path) -> Path:
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(tiny()), encoding="utf-8")
    return path


def options(out: Path, **given) -> Options:
    usual = {
        "frameworks": ("rag",), "budgets": (1, 2), "memories": "observations",
        "selectors": ("order", "paper", "auto"), "out": out,
    }  # fmt: skip
    return Options(**{**usual, **given})


def cli(*args: str):
    return CliRunner().invoke(app, [str(a) for a in args])


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_command_writes_every_file(data, tmp_path):
    out = tmp_path / "out"
    done = cli("run", "--data", data, "--frameworks", "rag", "--k", "1,2", "--out", out)
    assert done.exit_code == 0, done.output
    assert "RAG" in done.output
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["data"]["questions"] == 5
    assert manifest["data"]["questions_with_gold"] == 4
    assert len(manifest["data"]["sha256"]) == 64
    assert manifest["encoder"].startswith("wordllama ")
    assert manifest["frameworks"]["rag"]["backbone"] == "package"
    assert set(manifest["versions"]) >= {"mempursuit", "numpy", "numba", "python"}
    rows = lines(out / "selections.jsonl")
    assert len(rows) == 5 * 2 * 3  # questions × budgets × arms
    assert {r["arm"] for r in rows} == {"order", "paper", "auto"}
    assert all(len(r["ids"]) == r["k"] for r in rows)
    table = (out / "table.md").read_text()
    assert "| RAG | 2 | paper |" in table
    assert "## Complete coverage % by category" in table


def test_metrics_can_be_worked_out_again_from_the_files(data, tmp_path, encoder):
    out = tmp_path / "out"
    assert (
        cli("run", "--data", data, "--frameworks", "rag", "--k", "2", "--out", out).exit_code == 0
    )
    written = json.loads((out / "metrics.json").read_text())
    dataset = load_locomo(data)
    records = {r.id: r for c in dataset.conversations for r in c.memories["observations"]}
    chosen = {(r["question"], r["arm"]): r["ids"] for r in lines(out / "selections.jsonl")}
    for arm in ("order", "paper", "auto"):
        scores = [coverage(q, chosen[q.id, arm], records) for q in dataset.questions]
        recalls = [s.session_recall for s in scores if s.session_recall is not None]
        row = next(r for r in written["rows"] if r["arm"] == arm and r["category"] == "overall")
        assert row["n"] == 4
        assert row["session_recall"] == pytest.approx(np.mean(recalls))
        assert row["turn_complete"] == pytest.approx(
            np.mean([s.turn_complete for s in scores if s.turn_complete is not None])
        )
    assert {p["metric"] for p in written["paired"]} == {
        "session_recall", "complete_coverage", "turn_recall", "turn_complete",
    }  # fmt: skip
    assert {(o["arm"], o["k"]) for o in written["overlap"]} == {("paper", 2), ("auto", 2)}


def test_order_is_cosine_order(data, tmp_path, encoder):
    dataset = load_locomo(data)
    result = run(dataset, encoder, options(tmp_path, budgets=(5,)))
    facts = dataset.conversations[0].memories["observations"]
    M = encoder.encode([f.text for f in facts])
    M /= np.linalg.norm(M, axis=1, keepdims=True)
    for question in dataset.questions:
        native = next(
            c.ids for c in result.chosen if c.question == question.id and c.arm == "order"
        )
        best = np.argsort(-(M @ encoder.encode([question.text])[0]))
        assert list(native) == [facts[i].id for i in best]


def test_a_second_run_reads_what_the_first_one_stored(data, tmp_path, encoder, monkeypatch):
    dataset = load_locomo(data)
    first = run(dataset, encoder, options(tmp_path))

    def no(*args):
        raise AssertionError("this was done before")

    monkeypatch.setattr(RagBackbone, "fill", no)
    monkeypatch.setattr(RagBackbone, "pool", no)
    assert run(dataset, encoder, options(tmp_path)).chosen == first.chosen
    wider = run(dataset, encoder, options(tmp_path, budgets=(1, 2, 3)))
    assert [c for c in wider.chosen if c.k < 3] == first.chosen, "smaller budgets are prefixes"


def test_a_store_interrupted_while_filling_is_filled_again(data, tmp_path, encoder, monkeypatch):
    dataset = load_locomo(data)
    whole = RagBackbone.fill

    def interrupted(self, records):
        whole(self, records[:2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RagBackbone, "fill", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(dataset, encoder, options(tmp_path))
    result = run(dataset, encoder, options(tmp_path, budgets=(5,)))
    assert all(len(c.ids) == 5 for c in result.chosen)


def test_other_memories_get_another_store(data, tmp_path, encoder):
    dataset = load_locomo(data)
    run(dataset, encoder, options(tmp_path))
    turns = run(dataset, encoder, options(tmp_path, memories="turns"))
    assert all(i.startswith("tiny/D") and ":" in i for c in turns.chosen for i in c.ids)


def test_an_interrupted_command_says_how_to_go_on(data, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "_conversation", interrupted)
    done = cli("run", "--data", data, "--frameworks", "rag", "--out", tmp_path / "o")
    assert done.exit_code == 130
    assert "the same command goes on" in done.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--frameworks", "rag,memzero"], "--frameworks: 'memzero' is not one of"),
        (["--frameworks", ","], "--frameworks: name at least one"),
        (["--k", "ten"], "--k: budgets must be whole numbers"),
        (["--k", "0"], "--k: budgets must be whole numbers >= 1"),
        (["--memories", "dreams"], "--memories: 'dreams'"),
        (["--embedder", "bert"], "--embedder: 'bert' is not wordllama"),
        (["--embedder", "openai:x"], "OPENAI_API_KEY"),
        (["--selectors", "magic"], "--selectors: 'magic' is not one of"),
        (["--data", "nowhere.json"], "there is no file nowhere.json"),
    ],
)
def test_a_wrong_argument_is_named(args, says, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = cli("run", "--out", tmp_path, *args)
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.output


def test_a_folder_that_cannot_be_made_is_said_so(data, tmp_path):
    (tmp_path / "file").touch()
    done = cli("run", "--data", data, "--frameworks", "rag", "--out", tmp_path / "file")
    assert done.exit_code == 2
    assert "error:" in done.stderr
    assert "file" in done.stderr


def test_pools_survive_the_disk(tmp_path):
    query = np.array([1.0, 0.0], np.float32)
    pools = [
        Pool(ids=["a", "b"], vectors=[[1.0, 0.0], None], query=query),
        Pool(ids=["b"], vectors=[[0.5, 0.5, 0.5]], query=None),
        Pool(ids=[], vectors=[], query=query),
    ]
    save_pools(tmp_path / "pools.npz", pools)
    back = load_pools(tmp_path / "pools.npz")
    assert [p.ids for p in back] == [["a", "b"], ["b"], []]
    assert back[0].vectors[0].tolist() == [1.0, 0.0]
    assert np.isnan(back[0].vectors[1]).all(), "what could not be judged stays so"
    assert np.isnan(back[1].query).all()
    save_pools(tmp_path / "none.npz", [])
    assert load_pools(tmp_path / "none.npz") == []


def test_overlap_and_pairs_of_a_known_choice(data, tmp_path, encoder):
    result = run(load_locomo(data), encoder, options(tmp_path, budgets=(2,)))
    metrics = compute_metrics(result)
    for arm in ("paper", "auto"):
        by_question = {
            a: {c.question: set(c.picks) for c in result.chosen if c.arm == a}
            for a in ("order", arm)
        }
        expected = np.mean(
            [len(by_question["order"][q] & by_question[arm][q]) / 2 for q in by_question[arm]]
        )
        found = next(o for o in metrics.overlap if o["arm"] == arm)
        assert found["overlap"] == pytest.approx(expected)
