"""The HTML report without a browser: what it carries, and that texts stay texts."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eval.tests.tiny_locomo import tiny
from mempursuit_adapters import choose
from mempursuit_core import PRESETS, select
from mempursuit_eval.cli import app
from mempursuit_eval.html.page import unpack, write_html
from mempursuit_eval.saved import load_run

HOSTILE = "</script><img src=x onerror=alert(1)> & {{ 7 * 7 }} <!-- \u2028"


def hostile_tiny() -> list:
    samples = tiny()
    samples[0]["observation"]["session_1_observation"]["Ada"][0][0] += HOSTILE
    samples[0]["qa"][0]["question"] += HOSTILE
    return samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("html")
    (out / "tiny.json").write_text(json.dumps(hostile_tiny()), encoding="utf-8")
    for command in (
        ["run", "--data", out / "tiny.json", "--frameworks", "rag", "--k", "1,3", "--out", out,
         "--selectors", "order,paper,auto,mmr:0.5"],
        ["report", out, "--html"],
    ):  # fmt: skip
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def page(folder) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data(page) -> dict:
    return unpack(page)


class Elements(HTMLParser):
    """Collects every element and whether all are closed in order."""

    VOID = frozenset({"meta", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing(page):
    parser = Elements()
    parser.feed(page)
    assert parser.open == []
    assert not any("src" in a for _, a in parser.seen), "everything is inside the file"
    assert [a["href"] for _, a in parser.seen if "href" in a] == ["data:,"]
    policy = next(a["content"] for _, a in parser.seen if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg|http-equiv", "", page)
    controls = {a["id"] for t, a in parser.seen if t in ("select", "input") and "id" in a}
    assert controls == {"arm", "k", "metric", "search", "framework", "category"}
    labelled = [a.get("aria-labelledby") for t, a in parser.seen if t == "section"]
    headings = [a["id"] for t, a in parser.seen if t == "h2"]
    assert labelled == headings


def test_texts_cannot_become_markup(page, data):
    assert "onerror" not in page
    assert "49" not in data["questions"][0]["text"]
    assert data["questions"][0]["text"].endswith(HOSTILE)
    assert any(row[0].endswith(HOSTILE) for row in data["memories"])


def context(data: dict, k: int, arm: str, question: int) -> list[int]:
    expanded = data["contexts"].get("rag", {}).get(f"{k} {arm}")
    if expanded:
        return expanded[question]
    read = data["reads"]["rag"]
    return (read["order"] if arm == "order" else read[arm]["picks"])[question][:k]


def test_the_data_answers_the_figures_of_the_run(folder, data):
    metrics = json.loads((folder / "metrics.json").read_text())
    rows = [r for r in metrics["rows"] if r["category"] == "overall"]
    assert len(rows) == 2 * 4
    for row in rows:
        recalls = []
        for n, question in enumerate(data["questions"]):
            gold = set(question["sessions"])
            found = {data["memories"][m][1] for m in context(data, row["k"], row["arm"], n)}
            if gold:
                recalls.append(len(gold & found) / len(gold))
        assert np.mean(recalls) == pytest.approx(row["session_recall"])
        assert np.mean(np.array(recalls) == 1) == pytest.approx(row["complete_coverage"])
    assert data["paired"] == metrics["paired"]
    assert data["overlap"] == metrics["overlap"]


def test_curves_pass_through_the_table(folder, data):
    metrics = json.loads((folder / "metrics.json").read_text())
    curves = data["curves"]["rag"]["complete_coverage"]
    assert curves["k"] == [1, 2, 3]
    for row in metrics["rows"]:
        if row["category"] == "overall":
            at = curves["k"].index(row["k"])
            assert curves["arms"][row["arm"]][at] == pytest.approx(
                row["complete_coverage"], abs=1e-5
            )


def test_categories_add_up_to_the_whole(folder, data):
    overall = {(p["k"], p["arm"], p["metric"]): p for p in data["paired"]}
    for (k, arm, metric), whole in overall.items():
        parts = [
            r for r in data["by_category"]
            if (r["k"], r["arm"], r["metric"]) == (k, arm, metric)
        ]  # fmt: skip
        assert sum(r["n"] for r in parts) == whole["n"]
        mean = sum(r["delta"] * r["n"] for r in parts) / whole["n"]
        assert mean == pytest.approx(whole["delta"])


def test_traces_are_the_pursuits_own(folder, data):
    run = load_run(folder)
    read = data["reads"]["rag"]
    for n, (_, pool) in enumerate(run.pools("rag")):
        for arm in ("paper", "auto"):
            found = choose(pool, 3, PRESETS[arm])
            assert read[arm]["ranks"][n] == list(found.positions)
            assert read[arm]["scores"][n] == pytest.approx(found.scores, abs=1e-3)
            residuals = found.selection.residual_norms
            assert read[arm]["residuals"][n] == pytest.approx(residuals, abs=1e-3)
            assert read[arm]["gaps"][n] == pytest.approx(found.selection.gaps, rel=0.1)
        for k, residual in zip(data["budgets"], read["residual"][n], strict=True):
            own = select(pool.query, pool.vectors[:k], k).residual_norms[-1]
            assert residual == pytest.approx(own, abs=1e-3)
    assert set(read["mmr:0.5"]) == {"picks", "ranks"}, "only pursuit has utilities"


def test_gold_evidence_is_named_by_memory(data):
    question = next(q for q in data["questions"] if q["text"].startswith("What grows"))
    texts = {data["memories"][m][0] for m in question["evidence"]}
    assert texts == {
        "Ben's garden is in bloom with tulips.",
        "Ada's cat Miso broke a vase.",  # its evidence names D2:2 too
        "Ben planted roses in his garden.",
    }


def test_the_same_run_gives_the_same_bytes(folder, page):
    assert CliRunner().invoke(app, ["report", str(folder), "--html"]).exit_code == 0
    assert (folder / "report.html").read_text(encoding="utf-8") == page


def test_verdicts_of_a_judged_run_become_a_measure(folder, tmp_path):
    judged = tmp_path / "judged"
    shutil.copytree(folder, judged)
    manifest = json.loads((judged / "manifest.json").read_text())
    metrics = json.loads((judged / "metrics.json").read_text())
    manifest["judged"] = {"answerer": "a", "judge": "j"}
    cells = [("rag", k, arm) for k in (1, 3) for arm in ("order", "paper", "auto", "mmr:0.5")]
    names = ("framework", "k", "arm")
    metrics["judged_rows"] = [
        {**dict(zip(names, c, strict=True)), "category": category,
         "accuracy": 0.2 if c[2] == "order" else 0.6}
        for c in cells for category in ("overall", "multi-hop")
    ]  # fmt: skip
    metrics["judged_paired"] = [
        {**dict(zip(names, c, strict=True)), "category": category, "metric": "accuracy", "n": 5,
         "delta": 0.4, "ci_low": 0.1, "ci_high": 0.7, "p_value": 0.5, "gained": 2, "lost": 0}
        for c in cells if c[2] != "order" for category in ("overall", "multi-hop")
    ]  # fmt: skip
    lines = [
        {"question": f"tiny/q{q}", **dict(zip(names, c, strict=True)), "repeat": repeat,
         "score": None if q == 4 else float(c[2] != "order" and repeat == 0), "answer": f"a{q}"}
        for c in cells for q in range(5) for repeat in (0, 1)
    ]  # fmt: skip
    (judged / "manifest.json").write_text(json.dumps(manifest))
    (judged / "metrics.json").write_text(json.dumps(metrics))
    (judged / "judged.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = unpack(write_html(judged).read_text(encoding="utf-8"))
    assert next(iter(data["metrics"])) == "accuracy"
    assert data["answers"]["rag"]["3 paper"][0] == [0.5, "a0"], "the mean over repeats"
    assert data["answers"]["rag"]["3 order"][4] == [None, "a4"]
    curves = data["curves"]["rag"]["accuracy"]
    assert curves["k"] == [1, 3]
    assert (curves["arms"]["order"], curves["arms"]["paper"]) == ([0.2, 0.2], [0.6, 0.6])
    row = next(r for r in data["by_category"] if r["metric"] == "accuracy")
    assert (row["category"], row["without"]) == ("multi-hop", 0.2)


def test_a_folder_without_a_run_is_named(tmp_path):
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--html"])
    assert done.exit_code == 2
    assert "holds no finished run (manifest.json is missing)" in done.stderr
