"""The README's Mem0 examples run as they stand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mem0.utils.factory import EmbedderFactory

from integration_tests.mem0_kit import Embedder, config, facts, make, pursued, texts_of, write
from integration_tests.shared import ROOT
from mempursuit_adapters import mem0 as adapter

FACTS = facts(250)
EXAMPLES = [
    block
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    if "mempursuit_adapters.mem0" in block
]
USERS = sorted(set(re.findall(r'"user_id": "(\w+)"', "".join(EXAMPLES))))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the examples take for granted: a configuration, and memories in its store."""
    memory = make(tmp_path, {})
    for user in USERS:
        write(memory, FACTS, user=user)
    memory.vector_store.client.close()
    monkeypatch.setattr(EmbedderFactory, "create", lambda *_: Embedder(FACTS))
    yield config(tmp_path)
    adapter.uninstall()


def run(example: str, names: dict[str, Any]) -> Any:
    """Run `example` and return its last search's value."""
    tree = ast.parse(example)
    for statement in tree.body:
        if isinstance(statement, ast.Expr) and ".search(" in ast.unparse(statement):
            found = ast.Assign([ast.Name("found", ast.Store())], statement.value)
            tree.body[tree.body.index(statement)] = found
    exec(compile(ast.fix_missing_locations(tree), "README.md", "exec"), names)
    return names["found"]


def test_there_is_an_example() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_picks_by_pursuit(example: str, settings: dict[str, Any]) -> None:
    found = run(example, {"config": settings})
    preset = {"discount": "auto", "near_duplicate": 0.95} if '"auto"' in example else {}
    assert texts_of(found["results"]) == pursued(FACTS, 10, **preset)
