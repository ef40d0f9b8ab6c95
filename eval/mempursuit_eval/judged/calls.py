"""One call of a model: what is asked and what comes back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mempursuit_eval.judged.tokens import Usage

Stage = str  # "answer", "verdict", or "write FRAMEWORK"


@dataclass(frozen=True)
class Request:
    """One chat completion: a single user message, no system prompt.

    `repeat` tells apart samples of the same request; the first is 0, so that a run of one sample
    can be extended.
    """

    stage: Stage
    model: str
    prompt: str
    temperature: float
    max_tokens: int
    repeat: int = 0

    @cached_property
    def key(self) -> str:
        """SHA-256 over all that may change the reply; the endpoint's address is left out."""
        parts = [
            self.stage, self.model, self.temperature, self.max_tokens, self.repeat, self.prompt,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages to send."""
        return [{"role": "user", "content": self.prompt}]

    @property
    def parameters(self) -> dict[str, Any]:
        """What is sent besides the model and the messages, under OpenAI's first names for it."""
        return {"max_tokens": self.max_tokens, "temperature": self.temperature}


@dataclass(frozen=True)
class Reply:
    """What came back; `finish` is the server's reason for stopping, e.g. "stop" or "length"."""

    text: str
    finish: str
    usage: Usage
