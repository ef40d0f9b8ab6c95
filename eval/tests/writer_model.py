"""A model that writes memories for any framework, by rule: each thing said becomes one memory."""

from __future__ import annotations

import json
import re
from typing import Any

from eval.tests.chat_server import Reply, says


def write_memories(body: dict[str, Any], n: int) -> Reply:
    """Answer a framework's request in the form its prompt asks for."""
    system, user = "", body["messages"][-1]["content"]
    if body["messages"][0]["role"] == "system":
        system = body["messages"][0]["content"]
    usage = {"prompt_tokens": len(system + user) // 4, "completion_tokens": 11, "total_tokens": 0}
    for marker, answer in _ANSWERS.items():
        if marker in user:
            return says(answer(user), usage=usage)
    raise AssertionError(f"no framework asks like this: {user[:200]}")


def _mem0(prompt: str) -> str:
    new = prompt.partition("## New Messages\n")[2].partition("\n\n## ")[0]
    found = re.findall(r"^(user|assistant): (\w+): (.*)$", new, re.MULTILINE)
    return json.dumps(
        {
            "memory": [
                {"id": str(i), "text": f"{name} said: {text}", "attributed_to": role}
                for i, (role, name, text) in enumerate(found)
            ]
        }
    )


def _simplemem(prompt: str) -> str:
    window = prompt.partition("[Current Window Dialogues]\n")[2].partition("\n\n[Requirements]")[0]
    found = re.findall(r"^\[(.*?)\] (\w+): (.*)$", window, re.MULTILINE)
    entries = [
        {
            "lossless_restatement": f"{name} said: {text}",
            "keywords": text.split()[:3],
            # Like the real ones, some entries have no time of their own.
            "timestamp": None if "vase" in text else stamp,
            "persons": [name],
        }
        for stamp, name, text in found
    ]
    return f"```json\n{json.dumps(entries)}\n```"


def _lightmem(prompt: str) -> str:
    found = re.findall(r"^\[.*?\] (\d+)\.(\w+): (.*)$", prompt, re.MULTILINE)
    return json.dumps(
        {"data": [{"source_id": int(i), "fact": f"{who} said: {text}"} for i, who, text in found]}
    )


def _lightmem_update(prompt: str) -> str:
    return json.dumps({"action": "ignore"})


def _memorybank(prompt: str) -> str:
    talk = prompt.partition("Conversation on ")[2]
    return f"They talked about: {talk.splitlines()[-1]}"


_ANSWERS = {
    "## New Messages": _mem0,
    "[Current Window Dialogues]": _simplemem,
    "--- Topic ": _lightmem,
    "Target memory:": _lightmem_update,
    "Conversation on ": _memorybank,
}
