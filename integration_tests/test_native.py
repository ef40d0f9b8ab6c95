"""The real frameworks write their own memories through a server on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.tests.chat_server import ChatServer, Reply, refuses, says
from eval.tests.tiny_locomo import tiny
from eval.tests.writer_model import write_memories
from mempursuit_eval.cli import app
from mempursuit_eval.datasets import Dataset, load_locomo
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.judged.client import RetryPolicy
from mempursuit_eval.native import simplemem as simplemem_writer
from mempursuit_eval.native.base import WritingFailedError
from mempursuit_eval.native.options import WriterOptions
from mempursuit_eval.native.source import MEMORIES, NativeMemories
from mempursuit_eval.results import compute_metrics
from mempursuit_eval.run import Options, RunResult, run

KEY = "sk-a-key-that-must-stay-in-memory"
CALLS = {"mem0": 3, "mem0-paper": 6, "simplemem": 1, "memorybank": 3}  # for the tiny conversation

Script = Callable[[dict[str, Any], int], Reply]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    # Some frameworks would follow it past the loopback endpoint.
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-another-key")


@pytest.fixture(scope="module")
def encoder() -> WordLlamaEncoder:
    return WordLlamaEncoder()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "tiny.json").write_text(json.dumps(tiny()), encoding="utf-8")
    return tmp_path / "tiny.json"


def write(
    framework: str, dataset: Dataset, encoder: WordLlamaEncoder, out: Path, script: Script
) -> tuple[RunResult, list[dict[str, Any]]]:
    """Let `framework` write `dataset`; return the result and what was asked."""
    options = Options((framework,), (2,), "native", ("order", "paper"), out)
    policy = RetryPolicy(attempts=2, first=0.001, longest=0.002)
    with (
        ChatServer(script) as server,
        NativeMemories(WriterOptions("m", server.url), out / "replies.sqlite", policy) as memories,
    ):
        return run(dataset, encoder, options, source=memories), server.requests


@pytest.mark.parametrize("framework", CALLS)
def test_the_command_fills_the_stores_and_a_second_run_asks_nothing(framework, data, tmp_path):
    out = tmp_path / "out"
    with ChatServer(write_memories) as server:
        args = [
            "run", "--data", data, "--frameworks", framework, "--k", "1,2", "--out", out,
            "--memories", "native", "--writer", "m", "--base-url", server.url,
        ]  # fmt: skip
        first = CliRunner().invoke(app, [str(a) for a in args])
        assert first.exit_code == 0, first.output
        assert len(server.requests) == CALLS[framework]
        assert set(server.keys) == {f"Bearer {KEY}"}
        sent = sum(len("".join(m["content"] for m in r["messages"])) // 4 for r in server.requests)
        table = (out / "table.md").read_text()
        second = CliRunner().invoke(app, [str(a) for a in args])
        assert second.exit_code == 0, second.output
        assert len(server.requests) == CALLS[framework]
    assert (out / "table.md").read_text() == table
    assert f"{CALLS[framework]} calls, {sent:,} tokens in and {11 * CALLS[framework]}" in " ".join(
        first.stderr.split()
    )
    about = json.loads((out / "manifest.json").read_text())["frameworks"][framework]
    assert about["written_by"] == "m"
    assert about["calls"] == CALLS[framework]
    assert (about["prompt_tokens"], about["completion_tokens"]) == (sent, 11 * CALLS[framework])
    assert about["memories_of_unknown_session"] == (1 if framework == "simplemem" else 0)
    written = {json.loads(line)["id"] for line in (out / MEMORIES).read_text().splitlines()}
    rows = [json.loads(line) for line in (out / "selections.jsonl").read_text().splitlines()]
    assert rows
    assert all(set(row["ids"]) <= written for row in rows)
    holding = [p for p in out.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    assert holding == []


def test_mem0_is_given_dates_names_and_roles(data, encoder, tmp_path):
    result, asked = write("mem0", load_locomo(data), encoder, tmp_path / "out", write_memories)
    prompts = [r["messages"][1]["content"] for r in asked]
    assert "user: Ada: I adopted a cat called Miso.\nassistant: Ben: Lovely!" in prompts[0]
    days = [re.findall(r"## (?:Observation|Current) Date\n(\S+)", prompt) for prompt in prompts]
    assert days == [[d, d] for d in ("2023-05-08", "2023-06-01", "2023-07-02")]
    assert all("Name Ada or Ben" in prompt for prompt in prompts)
    assert "user: Ada: I adopted a cat" in prompts[2].partition("## Last k Messages")[2], (
        "the messages before are Mem0's own to keep"
    )
    records = list(result.records.values())
    assert [r.id for r in records] == [f"tiny/mem0-000{n}" for n in range(5)]
    assert [(r.speaker, r.session, r.evidence) for r in records] == [
        (t.speaker, t.session, t.evidence)
        for t in load_locomo(data).conversations[0].memories["turns"]
    ]
    chosen = next(c for c in result.chosen if c.question == "tiny/q0")
    assert "tiny/mem0-0002" in chosen.ids, "what did the cat break?"


def test_mem0_as_in_its_paper_writes_once_for_either_speaker(data, encoder, tmp_path):
    _, asked = write("mem0-paper", load_locomo(data), encoder, tmp_path / "out", write_memories)
    prompts = [r["messages"][1]["content"] for r in asked]
    assert "user: Ada: I adopted" in prompts[0]
    assert "Take memories only from what Ada says" in prompts[0]
    assert "assistant: Ada: I adopted" in prompts[3]
    assert "Take memories only from what Ben says" in prompts[3]
    assert "Existing Memories\n[]" in prompts[3], "the stores are apart"
    (index,) = (tmp_path / "out").rglob("speakers.json")
    assert json.loads(index.read_text()) == ["Ada", "Ben"]


def test_simplemem_entries_of_unknown_session_answer_but_do_not_cover(data, encoder, tmp_path):
    result, (asked,) = write(
        "simplemem", load_locomo(data), encoder, tmp_path / "out", write_memories
    )
    prompt = asked["messages"][1]["content"]
    assert "[2023-05-08T13:56:00] Ada: I adopted a cat called Miso." in prompt
    records = list(result.records.values())
    assert [r.session for r in records] == [1, 1, None, 2, 3]
    lost = records[2]
    assert lost.text == "Ada said: Miso broke a vase."
    assert lost.when == records[1].when, "dated as the entry before it"
    best = next(c for c in result.chosen if c.question == "tiny/q0" and c.arm == "order")
    assert lost.id in best.ids
    # It is the only evidence of this question, and the question's only session is its own.
    (row,) = [
        r
        for r in compute_metrics(result).rows
        if r["arm"] == "order" and r["category"] == "single-hop"
    ]
    assert (row["n"], row["session_recall"]) == (1, 0.0)


def test_simplemem_windows_keep_their_own_turns(encoder, tmp_path):
    """Three windows, written in parallel; every entry knows the session its window lies in."""
    (sample,) = tiny()
    for n in (1, 2, 3):
        sample["conversation"][f"session_{n}"] = [
            {"speaker": "Ada", "dia_id": f"D{n}:{t}", "text": f"Session {n}, vase {t}."}
            for t in range(1, 41)
        ]
    (tmp_path / "long.json").write_text(json.dumps([sample]))
    dataset = load_locomo(tmp_path / "long.json")
    result, asked = write("simplemem", dataset, encoder, tmp_path / "out", write_memories)
    assert len(asked) == 3
    turns = dataset.conversations[0].memories["turns"]
    assert [(r.text, r.session, r.when) for r in result.records.values()] == [
        (f"Ada said: Session {t.session}, vase {n % 40 + 1}.", t.session, t.when)
        for n, t in enumerate(turns)
    ]


def test_simplemem_asks_again_for_what_it_cannot_read(data, encoder, tmp_path):
    script = lambda body, n: write_memories(body, n) if n == 1 else says("no list")  # noqa: E731
    out = tmp_path / "out"
    result, asked = write("simplemem", load_locomo(data), encoder, out, script)
    assert len(asked) == 2
    assert asked[0] == asked[1]
    assert len(result.records) == 5
    assert result.facts["simplemem"]["windows_without_an_entry"] == 0
    shutil.rmtree(out / "stores")
    script = lambda body, n: refuses(500)  # noqa: E731
    again, asked = write("simplemem", load_locomo(data), encoder, out, script)
    assert asked == [], "the unreadable reply is kept in its place, and so is the one after it"
    assert again.records == result.records
    script = lambda body, n: says("no list")  # noqa: E731
    lost, _ = write("simplemem", load_locomo(data), encoder, tmp_path / "lost", script)
    assert lost.facts["simplemem"]["windows_without_an_entry"] == 1


def test_memorybank_adds_a_summary_to_every_date(data, encoder, tmp_path):
    def script(body: dict[str, Any], n: int) -> Reply:
        empty = "1 June 2023" in body["messages"][0]["content"]
        return says(" ") if empty else write_memories(body, n)

    result, asked = write("memorybank", load_locomo(data), encoder, tmp_path / "out", script)
    assert {r["temperature"] for r in asked} == {0.7}
    assert any("Conversation on Monday, 8 May 2023:\nAda: I adopted" in _said(r) for r in asked)
    records = list(result.records.values())
    assert [r.id.partition("/")[2] for r in records] == [
        "D1:1", "D1:2", "memorybank-s1", "D2:1", "D2:2", "D3:1", "memorybank-s3",
    ]  # fmt: skip
    assert result.facts["memorybank"]["empty_summaries"] == 1
    summary = records[2]
    assert summary.text.startswith("Summary of the conversation: They talked about: Ben: Lovely!")
    assert (summary.session, summary.speaker, summary.evidence) == (1, "Ada and Ben", ())


@pytest.mark.parametrize("framework", CALLS)
def test_a_store_with_a_failed_call_is_not_whole(framework, data, encoder, tmp_path, monkeypatch):
    """SimpleMem would go on without the window; the others stop by themselves."""
    monkeypatch.setattr(simplemem_writer.llm_client.time, "sleep", lambda seconds: None)
    out, dataset = tmp_path / "out", load_locomo(data)
    last = CALLS[framework] - 1
    answered = 0

    def failing(body: dict[str, Any], n: int) -> Reply:
        nonlocal answered
        if n >= last:
            return refuses(400, "this model is out of order")
        answered += 1
        return write_memories(body, n)

    with pytest.raises(WritingFailedError, match=f"{framework} could not write tiny.*out of order"):
        write(framework, dataset, encoder, out, failing)
    assert not list(out.rglob(MEMORIES))
    result, asked = write(framework, dataset, encoder, out, write_memories)
    assert len(asked) == CALLS[framework] - answered, "what was answered is not asked again"
    assert result.facts[framework]["calls"] == CALLS[framework]
    assert {c.question for c in result.chosen} == {q.id for q in dataset.questions}


def test_a_killed_run_goes_on_inside_a_conversation(tmp_path):
    """kill -9 in the second of two conversations: the first is whole, no reply is paid twice."""
    one, two = tiny()[0], json.loads(json.dumps(tiny()[0]).replace("Ada", "Eve"))
    two["sample_id"] = "other"
    (tmp_path / "two.json").write_text(json.dumps([one, two]))
    stuck = threading.Event()

    def holding_back(body: dict[str, Any], n: int) -> Reply:
        if n == 4:  # three calls for the first conversation, and the second's second
            stuck.set()
            threading.Event().wait(60)
        return write_memories(body, n)

    def arguments(url: str) -> list[str]:
        return [
            "run", "--data", str(tmp_path / "two.json"), "--frameworks", "mem0", "--k", "1",
            "--selectors", "order", "--out", str(tmp_path / "out"),
            "--memories", "native", "--writer", "m", "--base-url", url,
        ]  # fmt: skip

    with ChatServer(holding_back) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", "from mempursuit_eval.cli import app; app()",
             *arguments(server.url)],
            env={**os.environ, "OPENAI_API_KEY": KEY},
        )  # fmt: skip
        assert stuck.wait(120)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        kept = [_said(r) for r in server.requests[:4]]
    assert len(list((tmp_path / "out").rglob(MEMORIES))) == 1
    with ChatServer(write_memories) as server:
        done = CliRunner().invoke(app, arguments(server.url))
        assert done.exit_code == 0, done.output
        asked = [_said(r) for r in server.requests]
    assert len(asked) == 2
    assert not set(asked) & set(kept)
    assert "1 replies kept from before" in " ".join(done.stderr.split())


def _said(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])
