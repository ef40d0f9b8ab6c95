"""Answers and verdicts end to end: the command, a server on loopback, the files it leaves."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.tests.chat_server import ChatServer, refuses, says
from eval.tests.tiny_locomo import tiny
from mempursuit_eval.cli import app
from mempursuit_eval.judged import client

KEY = "sk-test-0123456789abcdef"
ANSWER_PROMPT = "{{ question }}\n{{ reference_date }}\n{{ memories }}"
JUDGE_PROMPT = "{{ question }}|{{ gold_answer }}|{{ generated_answer }}"
QUESTIONS = 5  # in the tiny file
ARMS = ("order", "paper", "auto")


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    quick = replace(client.RetryPolicy(), attempts=3, first=0.001, longest=0.002)
    monkeypatch.setattr("mempursuit_eval.judged.command.RetryPolicy", lambda: quick)


class Run:
    """A folder with the tiny data, two plain prompts and the command over them."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"
        self.data, self.answer, self.judge = (
            folder / name for name in ("tiny.json", "answer.txt", "judge.txt")
        )
        self.data.write_text(json.dumps(tiny()), encoding="utf-8")
        self.answer.write_text(ANSWER_PROMPT)
        self.judge.write_text(JUDGE_PROMPT)

    def __call__(self, server: ChatServer, *more: str, k: str = "1,2", exit_code: int = 0):
        done = CliRunner().invoke(
            app,
            ["run", "--data", str(self.data), "--frameworks", "rag", "--k", k, "--out",
             str(self.out), "--answerer", "answerer", "--judge", "judge", "--base-url", server.url,
             "--answer-prompt", str(self.answer), "--judge-prompt", str(self.judge), *more],
        )  # fmt: skip
        assert done.exit_code == exit_code, done.output
        return done

    @property
    def judged(self) -> list[dict]:
        text = (self.out / "judged.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def json(self, name: str) -> dict:
        return json.loads((self.out / name).read_text(encoding="utf-8"))

    def row(self, arm: str, k: int, category: str = "overall") -> dict:
        return next(
            r
            for r in self.json("metrics.json")["judged_rows"]
            if (r["arm"], r["k"], r["category"]) == (arm, k, category)
        )


@pytest.fixture
def run(tmp_path) -> Run:
    return Run(tmp_path)


def reader(body, n):
    """Answer with the newest memory; judge by the gold answer's last word being in the answer."""
    prompt = body["messages"][0]["content"]
    if body["model"] == "answerer":
        return says(f"Thinking.\nANSWER: {prompt.splitlines()[-1].split('] ')[1]}")
    _, gold, answer = prompt.split("|")
    label = "CORRECT" if gold.split()[-1].lower() in answer.lower() else "WRONG"
    return says(json.dumps({"label": label}))


def test_every_selection_is_answered_and_judged(run):
    with ChatServer(reader) as server:
        done = run(server)
        judged = run.judged
        assert len(judged) == QUESTIONS * 2 * len(ARMS)
        # Each arm's selection, oldest first, is what its answerer saw.
        selections = [
            json.loads(line) for line in (run.out / "selections.jsonl").read_text().splitlines()
        ]
        distinct = {(s["question"], frozenset(s["ids"])) for s in selections}
        assert len(server.prompts("answerer")) == len(distinct) < len(selections)
        assert len(set(server.prompts("judge"))) == len(server.prompts("judge"))
    assert all(
        j["answer"] is not None and (j["verdict"] == "CORRECT") == (j["score"] == 1) for j in judged
    )
    vase = next(
        j for j in judged if j["question"] == "tiny/q0" and j["k"] == 1 and j["arm"] == "order"
    )
    assert vase["answer"] == "Ada's cat Miso broke a vase."
    assert (vase["verdict"], vase["status"], vase["marked"]) == ("CORRECT", "judged", True)
    assert vase["contains_gold"] is True
    assert vase["token_f1"] == pytest.approx(2 * (1 / 5) / (1 / 5 + 1))
    for arm in ARMS:
        scores = [j["score"] for j in judged if (j["arm"], j["k"]) == (arm, 2)]
        row = run.row(arm, 2)
        assert (row["n"], row["questions"]) == (QUESTIONS, QUESTIONS)
        assert row["accuracy"] == pytest.approx(sum(scores) / QUESTIONS)
        assert row["accuracy_spread"] is None
    paired = run.json("metrics.json")["judged_paired"]
    assert {p["metric"] for p in paired} == {"accuracy", "token_f1", "contains_gold"}
    assert all(p["left_out"] == 0 for p in paired)
    assert "Accuracy %" in done.output
    about = run.json("manifest.json")["judged"]
    assert (about["answerer"], about["judge"], about["repeats"]) == ("answerer", "judge", 1)
    assert about["prompts"]["answer"]["name"] == "answer.txt"
    assert about["last_run"]["calls"] == len(server.requests)


def test_what_the_models_are_shown(run):
    with ChatServer(reader) as server:
        run(server, k="5")
        prompt = next(p for p in server.prompts("answerer") if p.startswith("When did Ada move?"))
        assert prompt.splitlines() == [
            "When did Ada move?",
            "Sunday, 2 July 2023",
            "[Monday, 8 May 2023] Ada adopted a cat called Miso.",
            "[Monday, 8 May 2023] Ben's garden is in bloom with tulips.",
            "[Thursday, 1 June 2023] Ada's cat Miso broke a vase.",
            "[Thursday, 1 June 2023] Ben planted roses in his garden.",
            "[Sunday, 2 July 2023] Ada moved to Porto for work.",
        ]
        # All five memories fit: every arm has the same context, asked once and counted for each.
        assert len(server.prompts("answerer")) == QUESTIONS
        shown = [p.split("|")[:2] for p in server.prompts("judge")]
    assert ["When did Ada move?", "2023"] in shown, "numbers are judged as text"
    assert ["Would Ada like dogs?", "Unknown"] in shown, "open-domain gold is cut at the first ;"
    assert len(run.judged) == QUESTIONS * len(ARMS)
    assert run.row("order", 5)["accuracy"] == run.row("auto", 5)["accuracy"]


def test_a_second_run_asks_only_what_changed(run):
    with ChatServer(reader) as server:
        run(server)
        first, judged = len(server.requests), run.judged
        run(server)
        assert len(server.requests) == first
        assert run.judged == judged
        about = run.json("manifest.json")["judged"]
        assert about["last_run"]["calls"] == 0
        assert sum(row["calls"] for row in about["all_replies_kept"]) == first
        assert {row["prompt_tokens"] / row["calls"] for row in about["all_replies_kept"]} == {100}

        run(server, k="1,2,3")
        fresh = server.requests[first:]
        assert {len(r["messages"][0]["content"].splitlines()) for r in fresh
                if r["model"] == "answerer"} == {2 + 3}  # fmt: skip
        seen = len(server.requests)

        run.judge.write_text(JUDGE_PROMPT + "!")
        run(server, k="1,2,3")
        assert {r["model"] for r in server.requests[seen:]} == {"judge"}


def test_a_judge_may_come_later_from_elsewhere(run):
    with ChatServer(reader) as first:
        done = CliRunner().invoke(
            app,
            ["run", "--data", str(run.data), "--frameworks", "rag", "--k", "1", "--out",
             str(run.out), "--answerer", "answerer", "--base-url", first.url, "--answer-prompt",
             str(run.answer)],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    assert {j["status"] for j in run.judged} == {"answered"}
    assert run.row("order", 1)["accuracy"] is None
    assert run.row("order", 1)["token_f1"] > 0
    with ChatServer(reader) as second:
        run(second, k="1")
        assert second.prompts("answerer") == []
    assert {j["status"] for j in run.judged} == {"judged"}


def test_failed_calls_are_no_wrong_answers_and_are_tried_again_by_the_next_run(run):
    def storm(body, n):
        failing = "vase" in body["messages"][0]["content"].splitlines()[0]
        return refuses(500, "storm") if failing and body["model"] == "answerer" else reader(body, n)

    with ChatServer(storm) as server:
        run(server)
        failed = [j for j in run.judged if j["status"] == "failed"]
        assert {j["question"] for j in failed} == {"tiny/q4"}  # "Who broke the vase …"
        assert all(j["score"] is None and j["note"].startswith("answer: HTTP 500") for j in failed)
        row = run.row("paper", 2)
        assert (row["failed"], row["n"], row["questions"]) == (1, QUESTIONS - 1, QUESTIONS)
        pair = next(
            p for p in run.json("metrics.json")["judged_paired"]
            if (p["arm"], p["k"], p["category"], p["metric"]) == ("paper", 2, "overall", "accuracy")
        )  # fmt: skip
        assert (pair["n"], pair["left_out"]) == (QUESTIONS - 1, 1)
    with ChatServer(reader) as server:
        run(server)
        assert all(p.startswith("Who broke") for p in server.prompts("answerer"))
        assert server.prompts("answerer")
    assert {j["status"] for j in run.judged} == {"judged"}


def test_odd_replies_are_counted_by_kind_and_never_correct(run):
    verdicts = {
        "What did": "```json\n{\"label\": \"CORRECT\"}\n```",
        "What grows": '{"label": "CORRECT"} or {"label": "WRONG"}',
        "When did": "It is right.",
        "Would Ada": "",
    }  # fmt: skip

    def odd(body, n):
        prompt = body["messages"][0]["content"]
        if body["model"] == "judge":
            return says(next(v for q, v in verdicts.items() if prompt.startswith(q)))
        if prompt.startswith("Who broke"):
            return says("I thought hard.\nANSWER:")
        if prompt.startswith("When did"):
            return says("In 2023 I guess", finish="length")
        return says("ANSWER: something")

    with ChatServer(odd) as server:
        run(server, k="5")
        assert not any(p.startswith("Who broke") for p in server.prompts("judge"))
    row = run.row("order", 5)
    assert row["unparsed"] == {"both labels": 1, "no label": 1, "empty reply": 1}
    assert row["verdict_forms"] == {"JSON in a code fence": 1}
    assert (row["empty_answers"], row["unmarked_answers"], row["cut_answers"]) == (1, 1, 1)
    assert (row["n"], row["accuracy"]) == (2, 0.5), "one CORRECT, one empty and so WRONG"
    by_question = {j["question"]: j for j in run.judged if j["arm"] == "order"}
    assert by_question["tiny/q4"]["status"] == "empty"
    assert by_question["tiny/q4"]["verdict"] == "WRONG"
    assert by_question["tiny/q1"]["verdict"] is None
    CliRunner().invoke(app, ["report", str(run.out), "--markdown"])
    report = (run.out / "report.md").read_text()
    assert "No verdict: both labels" in report
    assert "Empty answers" in report


def test_progress_tells_time_left_and_tokens_where_there_is_no_terminal(run, monkeypatch):
    monkeypatch.setattr("mempursuit_eval.judged.progress.LOG_EVERY", 0)
    with ChatServer(reader) as server:
        done = run(server, "--prices", "1000,0", "--concurrency", "1", k="5")
        told = " ".join(done.stderr.split())
        calls = len(server.requests)
    assert "1/5 answers and verdicts, about 0 min left; 2 calls, 200 tokens in" in told
    assert f"{calls} calls, {100 * calls:,} tokens in and {7 * calls} out, about" in told


@pytest.mark.parametrize("concurrency", [1, 3])
def test_calls_at_a_time_are_bounded(run, concurrency):
    together = threading.Barrier(concurrency)

    def meet(body, n):
        if n < concurrency:
            together.wait(20)  # so many do come at once
        return reader(body, n)

    with ChatServer(meet) as server:
        run(server, "--concurrency", str(concurrency))
        assert server.peak == concurrency


def test_tokens_are_counted_by_the_server_and_per_arm(run):
    def script(body, n):
        if body["model"] == "judge":
            return says('{"label": "CORRECT"}', usage={"prompt_tokens": 40, "completion_tokens": 2})
        size = len(body["messages"][0]["content"])
        return says("ANSWER: x", usage={"prompt_tokens": size, "completion_tokens": 11})

    with ChatServer(script) as server:
        run(server, k="2")
        spent = run.json("manifest.json")["judged"]["last_run"]
        answers, verdicts = server.prompts("answerer"), server.prompts("judge")
        assert spent["prompt_tokens"] == sum(map(len, answers)) + 40 * len(verdicts)
        assert spent["completion_tokens"] == 11 * len(answers) + 2 * len(verdicts)
        assert not spent["tokens_estimated"]
    # A token a character here: the context is the memories' own length.
    memories = {
        json.loads(line)["id"]: json.loads(line)
        for line in (run.out / "memories.jsonl").read_text().splitlines()
    }
    dated = len("[] ")
    chosen = [json.loads(line) for line in (run.out / "selections.jsonl").read_text().splitlines()]
    dates = {"2023-05-08": "Monday, 8 May 2023", "2023-06-01": "Thursday, 1 June 2023",
             "2023-07-02": "Sunday, 2 July 2023"}  # fmt: skip
    for arm in ARMS:
        lengths = [
            sum(dated + len(dates[memories[i]["when"][:10]]) + len(memories[i]["text"])
                for i in c["ids"]) + len(c["ids"]) - 1
            for c in chosen if c["arm"] == arm
        ]  # fmt: skip
        row = run.row(arm, 2)
        assert row["context_tokens"] == pytest.approx(sum(lengths) / QUESTIONS)
        assert row["verdict_tokens"] == 42
        assert row["completion_tokens"] == 11
        assert row["accuracy_per_1000_context_tokens"] == pytest.approx(
            1000 * row["accuracy"] / row["context_tokens"]
        )


def test_repeats_are_new_samples_with_mean_and_spread(run):
    def moody(body, n):
        # Right about every question the first time it is asked, wrong the second.
        if body["model"] == "answerer":
            return says("ANSWER: x")
        prompt = body["messages"][0]["content"]
        first = server.prompts("judge").count(prompt) == 1
        return says('{"label": "CORRECT"}' if first else '{"label": "WRONG"}')

    with ChatServer(moody) as server:
        run(server, k="5")
        once = len(server.requests)
        run(server, "--repeats", "2", "--concurrency", "1", k="5")
        assert len(server.requests) == 2 * once, "the first sample is kept"
    row = run.row("order", 5)
    assert row["accuracy_by_repeat"] == [1, 0]
    assert row["accuracy"] == 0.5
    assert row["accuracy_spread"] == pytest.approx(0.5**0.5)
    assert len(run.judged) == 2 * QUESTIONS * len(ARMS)


def test_a_limit_spreads_over_the_data(run):
    with ChatServer(reader) as server:
        run(server, "--limit", "2", k="1")
    assert {j["question"] for j in run.judged} == {"tiny/q0", "tiny/q2"}
    assert run.row("order", 1)["questions"] == 2


def test_the_reference_date_can_be_set_for_all(run):
    with ChatServer(reader) as server:
        run(server, "--reference-date", "2023", k="1")
        assert {p.splitlines()[1] for p in server.prompts("answerer")} == {"2023"}


def test_no_file_holds_the_key(run):
    def leaky(body, n):
        if n % 3 == 0:
            return refuses(400, f"bad request with Authorization: Bearer {KEY}")
        return says(f"ANSWER: {KEY}" if body["model"] == "answerer" else KEY)

    with ChatServer(leaky) as server:
        done = run(server)
        assert server.keys[0] == f"Bearer {KEY}"
    CliRunner().invoke(app, ["report", str(run.out)])
    files = [p for p in run.out.rglob("*") if p.is_file()]
    assert {"judged.jsonl", "replies.sqlite", "report.md"} <= {p.name for p in files}
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path.name
    assert KEY not in done.output
    assert {j["status"] for j in run.judged} >= {"failed", "unparsed"}


def test_a_dry_run_calls_nothing_and_says_what_a_run_would(run, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with ChatServer(reader) as server:
        done = run(server, "--dry-run", "--prices", "1000,0")
        assert server.requests == []
        assert not (run.out / "judged.jsonl").exists()
        run(server)
        answers = len(server.prompts("answerer"))
        tokens = sum(-(-len(p) // 4) for p in server.prompts("answerer"))
        again = run(server, "--dry-run")
    assert (
        f"answers by answerer: {answers} calls (0 kept from before), about {tokens}" in done.output
    )
    assert f"verdicts by judge: up to {answers} calls" in done.output
    assert "at --prices" in done.output
    assert f"answers by answerer: 0 calls ({answers} kept from before)" in again.output
    assert "verdicts by judge: 0 calls" in again.output


def test_a_refused_key_stops_before_hundreds_of_calls_and_keeps_the_retrieval_figures(run):
    with ChatServer(lambda body, n: refuses(401, f"Incorrect API key: {KEY}")) as server:
        done = run(server, "--concurrency", "2", exit_code=2)
        assert len(server.requests) <= 2
    assert "OPENAI_API_KEY" in done.stderr
    assert KEY not in done.output
    assert (run.out / "metrics.json").exists()
    assert "judged" not in run.json("manifest.json")


@pytest.mark.parametrize(
    ("args", "says_"),
    [
        (["--judge", "m"], "--judge: needs --answerer"),
        (["--dry-run"], "--dry-run: needs --answerer"),
        (["--answerer", "m", "--concurrency", "0"], "--concurrency: must be"),
        (["--answerer", "m", "--repeats", "0"], "--repeats: must be"),
        (["--answerer", "m", "--limit", "0"], "--limit: must be"),
        (["--answerer", "m", "--max-tokens", "0"], "--max-tokens: must be"),
        (["--answerer", "m", "--temperature", "-1"], "--temperature: must be"),
        (["--answerer", "m", "--prices", "cheap"], "--prices: two numbers"),
        (["--answerer", "m", "--answer-prompt", "none.txt"], "--answer-prompt: none.txt"),
        (["--answerer", "m"], "OPENAI_API_KEY is not set"),
        (["--benchmark", "squad"], "--benchmark: 'squad' is not one of"),
    ],
)
def test_a_wrong_argument_is_named_before_any_work(args, says_, tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(app, ["run", "--out", str(tmp_path / "out"), *args])
    assert done.exit_code == 2
    assert says_ in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path / "out").exists()
