"""The overhead benchmarks at a tiny size: what they measure, not how long it took."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mempursuit_eval.bench.frameworks import FRAMEWORKS, Options, bench_framework
from mempursuit_eval.bench.overhead import overhead_table
from mempursuit_eval.bench.report import Column, Report, Table
from mempursuit_eval.bench.stores import (
    LiftedEncoder,
    bundled_questions,
    isometry,
    synthetic_memories,
)
from mempursuit_eval.bench.timing import Contender, added, alternate, ratio
from mempursuit_eval.cli import app
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder

TINY = Options(memories=70, dimension=256, k=4, questions=3, rounds=2)
POOLS = {"lightmem": 60, "memorybank": 70}  # SimpleMem's is what its searches find


@pytest.fixture(scope="module")
def encoder():
    return WordLlamaEncoder()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_part_is_measured_on_every_question(framework, encoder):
    ticks = []
    report = bench_framework(framework, encoder, TINY, lambda *at: ticks.append(at))
    rows = {row["key"]: row for row in report.tables[0].rows}
    parts = {"without", "with", "read", "choose", "with - without"}
    if framework != "simplemem":  # whose search is as wide as its pool anyway
        parts |= {"wide", "wide - without", "with - wide"}
    assert set(rows) == parts
    assert {row["n"] for row in rows.values()} == {6}
    assert ticks == [(i, 6) for i in range(1, 7)]
    assert rows["without"]["share"] == 1
    assert rows["with"]["median_ms"] > rows["read"]["median_ms"] > 0
    setting = report.setting
    assert (setting["memories"], setting["dimension"], setting["K"]) == (70, 256, 4)
    assert setting["pool"] == POOLS.get(framework, setting["pool"]) > TINY.k
    assert setting["encoder"] == encoder.name
    assert {"mempursuit", "numpy"} < set(setting["versions"])
    assert len(setting["framework"]) >= 2  # port or package, and a version


def test_the_command_prints_and_writes_what_it_measured(tmp_path):
    sizes = ["--memories", "70", "--k", "4", "--questions", "2", "--rounds", "1"]
    done = CliRunner().invoke(
        app, ["bench", "memorybank", *sizes, "--dimension", "300", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "memorybank.json").read_text())
    assert written["setting"]["dimension"] == 300
    assert "lifted isometrically to 300-d" in written["setting"]["encoder"]
    page = (tmp_path / "memorybank.md").read_text()
    for row in written["tables"][0]["rows"]:
        assert row["part"] in done.output
        assert f"| {row['part']} | {row['median_ms']:.3f} | {row['p95_ms']:.3f} |" in page


def test_options_out_of_range_are_one_line(tmp_path):
    for options in (["--dimension", "8"], ["--preset", "none"]):
        done = CliRunner().invoke(app, ["bench", "memorybank", *options, "--out", str(tmp_path)])
        assert done.exit_code == 2
        assert done.output.startswith("error: ")


def test_a_search_that_fell_back_is_no_measurement(encoder, monkeypatch):
    def broken(*args: object) -> None:
        raise OSError("no choice today")

    monkeypatch.setattr("mempursuit_adapters.reader.choose", broken)
    with pytest.raises(RuntimeError, match=r"fallbacks: \{'OSError': 1\}"):
        bench_framework("memorybank", encoder, TINY)


def test_contenders_take_turns_and_everyone_is_first_and_last():
    calls: list[tuple[str, int]] = []
    names = ["a", "b", "c"]
    contenders = [
        Contender(name, lambda given, name=name: calls.append((name, given))) for name in names
    ]
    samples = alternate(contenders, [1, 2], rounds=3, warmup=0, pause=0)
    turns = [calls[i : i + 3] for i in range(0, len(calls), 3)]
    assert [turn[0][1] for turn in turns] == [1, 2, 1, 2, 1, 2]
    assert all(sorted(name for name, _ in turn) == names for turn in turns)
    assert {turn[0][0] for turn in turns} == {turn[-1][0] for turn in turns} == set(names)
    before_b = {turn[i - 1][0] for turn in turns for i in (1, 2) if turn[i][0] == "b"}
    assert before_b == {"a", "c"}
    assert {name: ms.shape for name, ms in samples.items()} == dict.fromkeys(names, (6,))


def test_staggered_contenders_meet_every_input_but_not_together():
    calls = []
    contenders = [
        Contender(name, lambda given, name=name: calls.append((name, given))) for name in "abc"
    ]
    samples = alternate(contenders, [0, 1, 2, 3, 4, 5], rounds=2, warmup=0, pause=0, stagger=2)
    for at in range(0, len(calls), 3):
        assert len({given for _, given in calls[at : at + 3]}) == 3
    for name in "abc":
        assert sorted(given for who, given in calls if who == name) == sorted([*range(6)] * 2)
        assert samples[name].shape == (12,)


def test_staggered_samples_stay_in_the_order_of_the_inputs():
    """The figure of an input stands in one place for all contenders, so ratios pair by input."""
    last: dict[str, float] = {}

    def contender(name: str) -> Contender[float]:
        return Contender(
            name,
            lambda given: last.__setitem__(name, given),
            parts=lambda: {f"{name} was given": last[name]},
        )

    inputs = [0.0, 1.0, 2.0, 3.0]
    samples = alternate(
        [contender("a"), contender("b")], inputs, rounds=2, warmup=0, pause=0, stagger=1
    )
    for name in "ab":
        np.testing.assert_array_equal(samples[f"{name} was given"], inputs * 2)


def test_the_clock_sees_the_call_alone():
    events: list[str] = []

    @contextmanager
    def around():
        events.append("in")
        yield
        events.append("out")

    def parts():
        events.append("parts")
        return {"part": 2.5}

    contender = Contender("x", lambda given: events.append("call"), around, parts)
    samples = alternate([contender], [0], rounds=2, warmup=1)
    assert events == ["in", "call", "parts", "out"] * 3
    assert samples["part"].tolist() == [2.5, 2.5]


def test_added_and_ratio_are_of_pairs():
    samples = {"with": np.array([2.0, 12.0, 30.0]), "without": np.array([1.0, 10.0, 20.0])}
    assert added(samples, "with", "without").median == 2.0  # of 1, 2, 10
    assert ratio(samples, "with", "without") == 1.5  # of 2, 1.2, 1.5
    rows = overhead_table(samples | {"read": np.ones(3), "choose": np.ones(3)}, "t").rows
    assert {row["key"]: row["share"] for row in rows}["with - without"] == 0.2


def test_the_lift_keeps_lengths_and_angles(encoder):
    texts = bundled_questions(5)
    low, high = encoder.encode(texts), LiftedEncoder(encoder, 1536).encode(texts)
    assert high.shape == (5, 1536)
    assert np.allclose(low @ low.T, high @ high.T, rtol=1e-4)
    with pytest.raises(ValueError, match="at least the encoder's own 256"):
        isometry(256, 255)


def test_memories_are_the_same_every_time_and_in_clusters(encoder):
    memories = synthetic_memories(2000)
    assert memories == synthetic_memories(2000)
    assert len({m.id for m in memories}) == 2000
    assert all(m.text for m in memories)
    vectors = encoder.encode([m.text for m in memories])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    assert np.median(cosines.max(axis=1)) > 0.75  # most are retold somewhere
    assert np.median(cosines) < 0.4


def test_a_report_shows_figures_in_its_columns_forms_and_keeps_them_in_full(tmp_path: Path):
    table = Table(
        "t", [Column("name", "Name"), Column("x", "X", ".1f")], [{"name": "n", "x": 1.26}]
    )
    report = Report("r", "Title", {"versions": {"a": "1", "b": "2"}}, [table, table], ["Note."])
    paths = report.write(tmp_path / "new")
    assert [path.name for path in paths] == ["r.json", "r.md"]
    assert json.loads(paths[0].read_text())["tables"][0]["rows"] == [{"name": "n", "x": 1.26}]
    page = paths[1].read_text()
    assert "- versions: a 1, b 2\n" in page
    assert page.count("| n | 1.3 |") == 2
    assert page.endswith("\nNote.\n")
