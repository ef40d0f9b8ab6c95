"""Embeddings from any OpenAI-compatible endpoint; key and address come from the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mempursuit_eval.encoders.base import EncoderUnavailableError

BATCH = 256  # texts a request; every known server takes as many


class OpenAIEncoder:
    """`model` at OPENAI_BASE_URL (default: OpenAI's own), authorised by OPENAI_API_KEY."""

    def __init__(self, model: str) -> None:
        try:
            from openai import OpenAI
        except ImportError:
            raise EncoderUnavailableError(
                "--embedder: openai:… needs the openai package: pip install openai"
            ) from None
        if not os.environ.get("OPENAI_API_KEY"):
            raise EncoderUnavailableError(
                "--embedder: openai:… reads its key from OPENAI_API_KEY, which is not set "
                "(servers that need none accept any value)"
            )
        self._client = OpenAI()  # retries with backoff on its own
        self._model = model
        self.dimension = self._ask(["dimension"]).shape[1]
        self.name = f"openai:{model} ({self.dimension}-d)"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding a text, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        parts = [self._ask(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
        return np.concatenate(parts)

    def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        from openai import OpenAIError

        try:
            answer = self._client.embeddings.create(
                model=self._model,
                # An empty input is an error to the service.
                input=[t or " " for t in texts],
                encoding_format="float",
            )
        except OpenAIError as error:
            raise EncoderUnavailableError(
                f"--embedder: {self._model} did not answer: {error}"
            ) from error
        rows = sorted(answer.data, key=lambda row: row.index)
        return np.asarray([row.embedding for row in rows], dtype=np.float32)
