"""LightMem's own writer, from a checkout of its source, filling a store through the evaluator."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.tests.chat_server import ChatServer, Reply, says
from eval.tests.tiny_locomo import tiny
from eval.tests.writer_model import write_memories
from integration_tests.lightmem_stores import source_module
from mempursuit_eval.backbones import BackboneUnavailableError
from mempursuit_eval.backbones import lightmem as backbones
from mempursuit_eval.backbones.lightmem import LightMemBackbone
from mempursuit_eval.datasets import Dataset, load_locomo
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.native.lightmem import LightMemWriter
from mempursuit_eval.native.options import WriterOptions
from mempursuit_eval.native.source import NativeMemories
from mempursuit_eval.run import Options, RunResult, run


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the backbone be LightMem's own, or skip."""
    module = source_module()

    def offline(name: str) -> Any:
        raise OSError("no network in tests")

    monkeypatch.setattr(backbones, "_package", module)
    monkeypatch.setattr(LightMemBackbone, "kind", "package")
    monkeypatch.setattr(module, "resolve_tokenizer", offline)
    return module


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    (tmp_path / "tiny.json").write_text(json.dumps(tiny()))
    return load_locomo(tmp_path / "tiny.json")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-that-must-stay-here")
    return


def write(dataset: Dataset, out: Path, server: ChatServer) -> tuple[RunResult, int]:
    """Run LightMem over `dataset`; return the result and how many calls it took."""
    before = len(server.requests)
    options = Options(("lightmem",), (2,), "native", ("order",), out)
    with NativeMemories(WriterOptions("m", server.url), out / "replies.sqlite") as memories:
        result = run(dataset, WordLlamaEncoder(), options, source=memories)
    return result, len(server.requests) - before


def test_every_fact_is_stored_with_the_turn_it_came_from(package, dataset, tmp_path, capsys):
    with ChatServer(write_memories) as server:
        result, calls = write(dataset, tmp_path / "out", server)
    assert calls == 1, "five short turns fit one buffer"
    turns = dataset.conversations[0].memories["turns"]
    assert [(r.session, r.when, r.speaker, r.evidence) for r in result.records.values()] == [
        (t.session, t.when, t.speaker, t.evidence) for t in turns
    ]
    assert next(iter(result.records.values())).text == "Ada said: I adopted a cat called Miso."
    assert {i for c in result.chosen for i in c.ids} <= set(result.records)
    assert result.facts["lightmem"]["buffer_tokens_counted"].startswith("by characters / 4")
    prompt = server.requests[0]["messages"][1]["content"]
    assert "--- Topic 0 ---\n[2023-05-08T13:56:00.000, Mon] 0.Ada: I adopted a cat" in prompt
    assert "tiny/D1:1" not in json.dumps(server.requests), "turn ids are for the store alone"
    assert capsys.readouterr().out == ""


def test_updates_are_made_and_found_again(package, dataset, tmp_path):
    """Three tellings of one fact are candidates of one another, in an order that must not vary."""
    tellings = ("Ben grows roses.", "Ben grows roses!", "Ben grows roses")

    def script(body: dict[str, Any], n: int) -> Reply:
        asked = body["messages"][1]["content"]
        if not asked.startswith("Target memory:"):
            facts = [{"source_id": i, "fact": fact} for i, fact in enumerate(tellings)]
            return says(json.dumps({"data": facts}))
        target = asked.partition("\n")[0].removeprefix("Target memory:")
        if target == tellings[0]:
            return says(json.dumps({"action": "update", "new_memory": "Ben grows red roses."}))
        return says(json.dumps({"action": "delete" if target == tellings[1] else "ignore"}))

    with ChatServer(script) as server:
        result, calls = write(dataset, tmp_path / "out", server)
        assert calls == 3, "one extraction; the newest telling has nothing newer to update it"
        assert [(r.text, r.evidence) for r in result.records.values()] == [
            ("Ben grows red roses.", ("D1:1",)),
            (tellings[2], ("D2:1",)),
        ]
        shutil.rmtree(tmp_path / "out" / "stores")
        again, calls = write(dataset, tmp_path / "out", server)
    assert calls == 0, "every prompt was the same"
    assert again.records == result.records


def test_a_call_that_lightmem_would_shrug_off_fails_the_store(package, dataset, tmp_path):
    from eval.tests.chat_server import refuses
    from mempursuit_eval.native.base import WritingFailedError

    with (
        ChatServer(lambda body, n: refuses(400, "the context is too long")) as server,
        pytest.raises(WritingFailedError, match=r"lightmem could not write tiny: .*too long"),
    ):
        write(dataset, tmp_path / "out", server)
    assert not list((tmp_path / "out").rglob("memories.jsonl"))


def test_the_port_cannot_write(monkeypatch):
    monkeypatch.setattr(backbones, "_package", None)
    with pytest.raises(
        BackboneUnavailableError, match=r"pip install git\+https://github.com/zjunl"
    ):
        LightMemWriter()
