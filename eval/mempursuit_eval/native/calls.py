"""A framework's call as the answering stages' client and cache take it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mempursuit_eval.judged.calls import Request, Stage

_NAMED = ("max_tokens", "temperature")  # what the client adapts to the model
_LEFT_OUT = {"model", "messages", "stream", *_NAMED}


def stage_of(framework: str) -> Stage:
    """Return the stage under which a framework's calls are kept and counted."""
    return f"write {framework}"


@dataclass(frozen=True)
class WriterCall(Request):
    """A chat completion as a framework asks for it; `body` is the JSON it sent."""

    body: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def from_body(cls, stage: Stage, body: Mapping[str, Any], repeat: int = 0) -> WriterCall:
        """Return the call that `body` asks for.

        Raises:
            KeyError, TypeError, ValueError: it asks for none, or for a streamed one.
        """
        if body.get("stream"):
            raise ValueError("streamed replies are not kept; ask without stream")
        return cls(
            stage,
            str(body["model"]),
            "\n".join(_text(message) for message in body["messages"]),
            float(body.get("temperature") or 0.0),
            int(body.get("max_tokens") or 0),
            repeat,
            body,
        )

    @cached_property
    def key(self) -> str:
        """SHA-256 over all that may change the reply; the endpoint's address is left out."""
        asked = {name: value for name, value in self.body.items() if name != "stream"}
        parts = [self.stage, self.repeat, asked]
        text = json.dumps(parts, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as the framework wrote them."""
        return list(self.body["messages"])

    @property
    def parameters(self) -> dict[str, Any]:
        """Whatever else the framework asked for."""
        named = {name: self.body[name] for name in _NAMED if self.body.get(name) is not None}
        rest = {name: value for name, value in self.body.items() if name not in _LEFT_OUT}
        # Not as arguments: the client refuses names it does not know, such as a server's own.
        return {**named, "extra_body": rest} if rest else named


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
