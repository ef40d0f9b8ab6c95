"""A judged run that is killed goes on where it was, and pays for nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.tests.chat_server import ChatServer, says
from eval.tests.tiny_locomo import tiny
from mempursuit_eval.cli import app

CONCURRENCY = 2
ANSWERED = 9  # replies sent before the server holds back


def arguments(folder: Path, url: str) -> list[str]:
    return [
        "run", "--selectors", "order",
        "--data", str(folder / "tiny.json"), "--frameworks", "rag", "--k", "1,2",
        "--out", str(folder / "out"), "--answerer", "answerer", "--judge", "judge",
        "--base-url", url, "--concurrency", str(CONCURRENCY),
    ]  # fmt: skip


def reply(body):
    if body["model"] == "judge":
        return says('{"label": "CORRECT"}')
    return says(f"ANSWER: {len(body['messages'][0]['content'])}")


def start(folder: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from mempursuit_eval.cli import app; app()",
         *arguments(folder, url)],
        env={**os.environ, "OPENAI_API_KEY": "none"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(folder: Path) -> tuple[set[str], str]:
    """Run in this process to the end; return what was asked and what was judged."""
    with ChatServer(lambda body, n: reply(body)) as server:
        done = CliRunner().invoke(app, arguments(folder, server.url))
        assert done.exit_code == 0, done.output
        asked = [json.dumps(r, sort_keys=True) for r in server.requests]
    assert len(set(asked)) == len(asked)
    return set(asked), (folder / "out" / "judged.jsonl").read_text()


def data(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tiny.json").write_text(json.dumps(tiny()), encoding="utf-8")
    return folder


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_stopped_run_goes_on_without_asking_twice(tmp_path, monkeypatch, how):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    folder = data(tmp_path / "stopped")
    stuck, go = threading.Event(), threading.Event()

    def holding_back(body, n):
        if n >= ANSWERED:
            # A worker that asks again has kept its last reply: all ANSWERED are on the disk now.
            if n == ANSWERED + CONCURRENCY - 1:
                stuck.set()
            go.wait(60)
        return reply(body)

    with ChatServer(holding_back) as server:
        process = start(folder, server.url)
        assert stuck.wait(120)
        process.send_signal(how)
        if how == signal.SIGINT:
            go.set()  # what is on its way still comes, and is kept
        _, said = process.communicate(timeout=60)
        go.set()
        asked = [json.dumps(r, sort_keys=True) for r in server.requests]
    assert not (folder / "out" / "judged.jsonl").exists()
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        kept = set(asked[:ANSWERED])
    else:
        assert process.returncode == 130
        assert "the same command goes on from here" in said
        kept = set(asked)

    again, judged = finish(folder)
    assert not kept & again, "a reply that was kept was paid for twice"
    whole, judged_at_once = finish(data(tmp_path / "at once"))
    assert kept | again == whole, "both runs together asked what one run asks"
    assert judged == judged_at_once
