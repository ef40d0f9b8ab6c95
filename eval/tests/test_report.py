"""The report in the layout of the paper's Table 4, from a run's files alone."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from eval.tests.chat_server import ChatServer, says
from eval.tests.tiny_locomo import tiny
from mempursuit_eval.cli import app
from mempursuit_eval.download import LOCOMO_SHA256
from mempursuit_eval.report import print_report, report_tables, setting
from mempursuit_eval.report.grid import p_value, rows
from mempursuit_eval.report.latex import escape
from mempursuit_eval.report.published import ACCURACY, COVERAGE
from mempursuit_eval.report.tables import Line, PaperTable
from mempursuit_eval.saved import load_run


def cli(*args: object):
    done = CliRunner().invoke(app, [str(a) for a in args])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A judged run of the tiny data; every answer that names Miso is right."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tiny.json").write_text(json.dumps(tiny()), encoding="utf-8")
    (folder / "answer.txt").write_text("{{ question }}{{ reference_date }}\n{{ memories }}")

    def script(body, n):
        prompt = body["messages"][0]["content"]
        if body["model"] != "gpt-4o-mini-judge":
            return says("ANSWER: " + ("Miso" if "Miso" in prompt else "a dog"))
        return says('{"label": "CORRECT"}' if "grade: Miso" in prompt else '{"label": "WRONG"}')

    with pytest.MonkeyPatch.context() as patch, ChatServer(script) as server:
        patch.setenv("OPENAI_API_KEY", "none")
        cli("run", "--data", folder / "tiny.json", "--frameworks", "rag", "--k", "1,2", "--out",
            folder / "out", "--answerer", "gpt-4o-mini", "--judge", "gpt-4o-mini-judge",
            "--base-url", server.url, "--answer-prompt", folder / "answer.txt")  # fmt: skip
    return folder / "out"


@pytest.fixture
def out(made, tmp_path) -> Path:
    """A copy with the files a report may need: no stores, no replies."""
    target = tmp_path / "out"
    target.mkdir()
    for name in ("manifest.json", "metrics.json", "selections.jsonl", "memories.jsonl",
                 "questions.jsonl", "judged.jsonl"):  # fmt: skip
        shutil.copy(made / name, target)
    return target


def change(path: Path, edit) -> None:
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


def test_the_markdown_says_what_the_files_say(out):
    cli("report", out, "--markdown")
    assert sorted(p.name for p in out.glob("report.*")) == ["report.md"]
    text = (out / "report.md").read_text()
    metrics = json.loads((out / "metrics.json").read_text())
    rates = {(r["arm"], r["k"], r["category"]): 100 * r["accuracy"] for r in metrics["judged_rows"]}
    pairs = {
        (p["arm"], p["k"], p["category"]): 100 * p["delta"]
        for p in metrics["judged_paired"]
        if p["metric"] == "accuracy"
    }
    table = text.split("## Accuracy %")[1].split("## ")[0]
    lines = [
        [cell.strip().replace("*", "") for cell in line.strip("| ").split(" | ")]
        for line in table.splitlines()
        if line.startswith("| ") and "System" not in line
    ]
    assert [line[:3] for line in lines] == [
        [str(k), "RAG", arm] for k in (1, 2) for arm in ("w/o", "w/ paper", "w/ auto")
    ]
    for line in lines:
        arm, k = line[2].removeprefix("w/ ").replace("w/o", "order"), int(line[0])
        order = ["multi-hop", "temporal", "open-domain", "single-hop", "overall"]
        for cell, category in zip(line[3:8], order, strict=True):
            expected = f"{rates[arm, k, category]:.2f}"
            if arm != "order":
                expected += f" ({pairs[arm, k, category]:+.2f})"
            assert cell == expected
    for part in ("## Session recall %", "## Complete coverage %", "Points per 1,000 context tokens",
                 "## Scores that need no judge", "Answerer: gpt-4o-mini; judge",
                 "Overall (n = 5)"):  # fmt: skip
        assert part in text


def test_the_csv_has_every_line_in_full_precision(out):
    cli("report", out, "--csv")
    found = list(csv.DictReader(io.StringIO((out / "report.csv").read_text())))
    assert len(found) == 3 * 2 * 3  # metrics × budgets × arms
    metrics = json.loads((out / "metrics.json").read_text())
    row = next(
        r for r in found if (r["metric"], r["k"], r["mempursuit"]) == ("accuracy", "2", "w/ paper")
    )
    rate = next(
        r for r in metrics["judged_rows"]
        if (r["arm"], r["k"], r["category"]) == ("paper", 2, "multi-hop")
    )  # fmt: skip
    pair = next(
        p for p in metrics["judged_paired"]
        if (p["arm"], p["k"], p["category"], p["metric"]) == ("paper", 2, "overall", "accuracy")
    )  # fmt: skip
    assert float(row["multi-hop"]) == pytest.approx(100 * rate["accuracy"], abs=1e-6)
    assert float(row["overall change"]) == pytest.approx(100 * pair["delta"], abs=1e-6)
    assert float(row["ci low"]) == pytest.approx(100 * pair["ci_low"], abs=1e-6)
    assert float(row["p"]) == pytest.approx(pair["p_value"])


def test_the_latex_is_whole(out):
    cli("report", out, "--latex")
    text = (out / "report.tex").read_text()
    assert text.count(r"\begin{tabular}{rllrrrrrrr}") == text.count(r"\end{tabular}") == 3
    body = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert len(body) == 3 * (1 + 6)
    assert all(line.count(" & ") == 9 for line in body)
    assert r"\caption{Accuracy \%." in text
    assert "%" not in text.split(r"\caption{")[1].split("\n")[0].replace(r"\%", "")


def test_special_characters_are_escaped_for_latex():
    assert escape("50 % of a_b & {c} ~ # $1 \\x") == (
        r"50 \% of a\_b \& \{c\} \textasciitilde{} \# \$1 \textbackslash{}x"
    )
    assert escape("[-1.5, +2.0] multi-hop 3-4") == "[$-$1.5, +2.0] multi-hop 3-4"


def test_a_run_without_verdicts_has_the_coverage_tables_alone(out):
    change(out / "manifest.json", lambda m: m.pop("judged"))
    done = cli("report", out)
    text = (out / "report.md").read_text()
    assert "Accuracy" not in text
    assert "Session recall %" in text
    assert "Session recall %" in done.output
    assert [t.metric for t in report_tables(load_run(out))] == [
        "session_recall",
        "complete_coverage",
    ]


def test_a_later_run_without_answers_does_not_report_the_old_ones(made, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(made, folder)
    cli("run", "--data", made.parent / "tiny.json", "--frameworks", "rag", "--k", "1", "--out",
        folder)  # fmt: skip
    cli("report", folder, "--markdown")
    assert "Accuracy" not in (folder / "report.md").read_text()


def test_a_folder_without_a_run_is_named(tmp_path):
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert "holds no finished run" in done.stderr


def as_lightmem_on_locomo(out: Path, **options: str) -> None:
    """Turn the run into one of LightMem at K = 10 and 20 on LoCoMo's official file."""

    def manifest(m):
        m["data"]["sha256"] = LOCOMO_SHA256
        m["frameworks"] = {"lightmem": m["frameworks"]["rag"]}
        m["options"].update(frameworks=["lightmem"], k=[10, 20], **options)

    def metrics(m):
        for name in m:
            for row in m[name] if isinstance(m[name], list) else ():
                if "framework" in row:
                    row["framework"] = "lightmem"
                if "k" in row:
                    row["k"] = 10 * row["k"]

    change(out / "manifest.json", manifest)
    change(out / "metrics.json", metrics)


def test_the_papers_figures_stand_beside_with_what_differs(out):
    as_lightmem_on_locomo(out)
    run = load_run(out)
    table = report_tables(run)[0]
    paper = [line for line in table.lines if line.source]
    assert [(line.k, line.arm, line.values["overall"]) for line in paper] == [
        (10, "w/o", 71.10), (10, "w/ paper", 73.70), (20, "w/o", 77.40), (20, "w/ paper", 77.73),
    ]  # fmt: skip
    assert paper[1].changes["overall"] == 2.60
    (note,) = table.notes
    assert "observations, not the framework's own writer" in note
    assert "judge gpt-4o-mini-judge, not gpt-4o-mini" in note
    assert "answerer" not in note
    cli("report", out, "--markdown")
    text = (out / "report.md").read_text()
    assert "| w/ paper (published, Table 4) | **69.15** (+6.38) |" in text


def test_the_same_setting_is_said_to_be_the_same(out):
    as_lightmem_on_locomo(out, memories="native")
    change(out / "manifest.json", lambda m: m["judged"].update(judge="gpt-4o-mini-2024-07-18"))
    (note,) = report_tables(load_run(out))[0].notes
    assert "the same" in note


def test_other_data_and_frameworks_have_no_published_figures(out):
    assert not any(line.source for t in report_tables(load_run(out)) for line in t.lines)
    as_lightmem_on_locomo(out)
    change(out / "manifest.json", lambda m: m["data"].update(sha256="0" * 64))
    tables = report_tables(load_run(out))
    assert not any(line.source for table in tables for line in table.lines)


def test_published_figures_are_the_papers():
    # Changes as Table 4 prints them, which the two figures must agree with.
    printed = {
        ("lightmem", 10): (6.38, 1.25, 1.04, 2.02, 2.60),
        ("memorybank", 10): (3.19, -4.05, 5.21, 4.40, 2.47),
        ("simplemem", 10): (7.80, 0.62, 4.17, 7.37, 5.84),
        ("mem0-paper", 10): (10.28, 7.48, 5.21, 10.11, 9.29),
        ("lightmem", 20): (0.71, 0.00, -2.08, 0.59, 0.32),
        ("memorybank", 20): (4.96, -1.25, 0.00, 5.83, 3.83),
        ("simplemem", 20): (7.45, 1.87, -3.12, 6.06, 4.87),
        ("mem0-paper", 20): (2.13, 4.67, -1.04, 5.47, 4.29),
    }
    for cell, changes in printed.items():
        paper = ACCURACY[cell]
        for category, expected in zip(paper.without, changes, strict=True):
            found = paper.with_[category] - paper.without[category]
            assert found == pytest.approx(expected, abs=0.011), (cell, category)
    assert COVERAGE["complete_coverage"]["mem0", 20].with_["overall"] == 90.3


def test_a_shipped_prompt_is_said_not_to_be_the_papers(out):
    def ship(m):
        for prompt in m["judged"]["prompts"].values():
            prompt["name"] = "shipped:x"

    assert not any("other words" in line for line in setting(load_run(out)))
    change(out / "manifest.json", ship)
    assert any("other words" in line for line in setting(load_run(out)))


def line(arm: str, low: float = 0, high: float = 0, k: int = 10, **more) -> Line:
    middle = (low + high) / 2
    return Line("LightMem", k, arm, {"overall": 50 + middle}, {"overall": middle}, None,
                (low, high), 0.5, **more)  # fmt: skip


def test_the_finding_goes_by_the_interval():
    table = PaperTable(
        "Accuracy %",
        "accuracy",
        {"overall": 9},
        (
            Line("LightMem", 10, "w/o", {"overall": 50.0}),
            line("w/ paper", 0.5, 4.5),
            line("w/ auto", -3, 1),
            line("w/ paper", -4, -2, k=20),
            line("w/ paper", 9, 9, k=20, source="Table 4"),
            line("w/ auto", 0, 2, k=20),
        ),
        (),
    )
    assert table.verdicts == [
        "LightMem w/ paper: K = 10 helps (+2.50 [+0.50, +4.50]); "
        "K = 20 hurts (-3.00 [-4.00, -2.00])",
        "LightMem w/ auto: K = 10 no difference shown (-1.00 [-3.00, +1.00]); "
        "K = 20 no difference shown (+1.00 [+0.00, +2.00])",
    ]


def test_the_highest_of_a_framework_and_budget_is_bold():
    table = PaperTable(
        "x", "x", {"overall": 1},
        (Line("A", 10, "w/o", {"overall": 50.0}), line("w/ paper", 2, 4),
         Line("A", 10, "w/ paper", {"overall": 53.0}),
         Line("A", 20, "w/o", {"overall": 1.0}), Line("A", 20, "w/ paper", {"overall": 1.0})),
        (),
    )  # fmt: skip
    overall = [row[3] for row in rows(table, lambda text: f"*{text}*")]
    assert overall == ["50.00", "53.00 (+3.00)", "*53.00*", "1.00", "1.00"]


def test_p_values_are_printed_as_in_the_table():
    assert [p_value(p) for p in (0.0004, 0.0214, 1.0, None)] == ["<.001", ".021", "1.000", ""]


@pytest.mark.parametrize(("width", "columns"), [(160, "Multi-hop"), (80, None)])
def test_a_narrow_terminal_gets_the_overall_figures_alone(out, width, columns):
    screen = io.StringIO()
    print_report(out, Console(file=screen, width=width))
    text = screen.getvalue()
    assert ("Multi-hop" in text) == (columns is not None)
    assert "Overall" in text
    assert "…" not in text
    assert "95 % CI" in text
