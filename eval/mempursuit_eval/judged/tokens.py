"""Counting tokens: the server's own figures, or an estimate where it gives none."""

from __future__ import annotations

from dataclasses import dataclass

CHARACTERS_PER_TOKEN = 4  # usual for English with today's vocabularies


def estimate_tokens(text: str) -> int:
    """Return roughly how many tokens `text` has, by its characters."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; `estimated` if the server did not say."""

    prompt: int
    completion: int
    estimated: bool

    def context(self, prompt: str, memories: str) -> float:
        """Return how many of the prompt's tokens are memories, by their share of its characters."""
        return self.prompt * len(memories) / len(prompt) if prompt else 0.0
