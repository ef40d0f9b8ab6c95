"""--memories native on the command line: what is refused, and what a dry run prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.tests.chat_server import ChatServer, says
from eval.tests.tiny_locomo import tiny
from mempursuit_eval.cli import app
from mempursuit_eval.datasets import load_locomo
from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.calls import Reply
from mempursuit_eval.judged.tokens import Usage
from mempursuit_eval.native.memorybank import MemoryBankWriter
from mempursuit_eval.native.plan import make_plan


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "tiny.json").write_text(json.dumps(tiny()), encoding="utf-8")
    return tmp_path / "tiny.json"


def cli(*args: object):
    return CliRunner().invoke(app, ["run", *map(str, args)])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--memories", "native", "--frameworks", "memorybank"], "needs --writer"),
        (["--writer", "m"], "--writer: writes for --memories native"),
        (["--memories", "native", "--writer", "m"], "rag has no writer of its own"),
        (
            ["--memories", "native", "--writer", "m", "--frameworks", "x",
             "--base-url", "http://127.0.0.1:9/v1"],
            "'x' is not one of",
        ),
        (
            ["--memories", "native", "--writer", "m", "--frameworks", "memorybank",
             "--concurrency", "0"],
            "--concurrency: must be",
        ),
        (
            ["--memories", "native", "--writer", "m", "--frameworks", "memorybank",
             "--base-url", "https://api.openai.com/v1"],
            "OPENAI_API_KEY is not set",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_before_anything_is(args, says, data, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = cli("--data", data, "--out", tmp_path / "out", *args)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not (tmp_path / "out" / "stores").exists()


def test_a_dry_run_needs_no_key_and_calls_nothing(data, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ChatServer(lambda body, n: says("no")) as server:
        done = cli(
            "--data", data, "--out", tmp_path / "out", "--frameworks", "memorybank",
            "--memories", "native", "--writer", "m", "--base-url", server.url, "--dry-run",
            "--prices", "1,2",
        )  # fmt: skip
        assert server.requests == []
    assert done.exit_code == 0, done.output
    assert re.search(r"MemoryBank\s+1 of 1\s+3\s", done.stdout), "a summary a session"
    assert "estimate" in done.stdout
    assert "at --prices" in done.stdout
    assert not (tmp_path / "out" / "stores").exists()


def test_the_plan_learns_how_long_replies_are(data, tmp_path):
    conversations = load_locomo(data).conversations
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        guess = make_plan(MemoryBankWriter(), conversations, 1, "m", cache)
        cache.put("a", "write memorybank", "m", Reply("…", "stop", Usage(9, 20, False)))
        cache.put("b", "write memorybank", "m", Reply("…", "stop", Usage(9, 30, False)))
        cache.put("c", "write mem0", "m", Reply("…", "stop", Usage(9, 9000, False)))
        known = make_plan(MemoryBankWriter(), conversations, 1, "m", cache)
        done = make_plan(MemoryBankWriter(), [], 1, "m", cache)
    assert (guess.calls, guess.written) == (3, 0)
    assert guess.completion_tokens == 3 * 150
    assert known.completion_tokens == 3 * 25
    assert (done.calls, done.written, done.completion_tokens) == (0, 1, 0)
