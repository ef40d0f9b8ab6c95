"""From `--embedder` to an encoder."""

from __future__ import annotations

from mempursuit_eval.encoders.base import Encoder

CHOICES = "wordllama, wordllama:DIM, minilm, st:NAME or openai:NAME"


def make_encoder(spec: str) -> Encoder:
    """Return the encoder named by `spec` (wordllama, wordllama:DIM, minilm, st:NAME, openai:NAME).

    Raises:
        ValueError: `spec` names no encoder.
        EncoderUnavailableError: its package, model or key is missing; the message says what to do.
    """
    kind, _, name = spec.partition(":")
    if kind == "wordllama":
        from mempursuit_eval.encoders.wordllama import DIMENSIONS, WordLlamaEncoder

        by_name = {str(dimension): dimension for dimension in DIMENSIONS}
        if spec == "wordllama":
            return WordLlamaEncoder()
        if name not in by_name:
            raise ValueError(f"--embedder: {spec!r} can have {', '.join(by_name)} dimensions")
        return WordLlamaEncoder(by_name[name])
    if spec == "minilm" or (kind == "st" and name):
        from mempursuit_eval.encoders.sentence_transformer import (
            MINILM,
            SentenceTransformerEncoder,
        )

        return SentenceTransformerEncoder(name or MINILM)
    if kind == "openai" and name:
        from mempursuit_eval.encoders.openai import OpenAIEncoder

        return OpenAIEncoder(name)
    raise ValueError(f"--embedder: {spec!r} is not {CHOICES}")
