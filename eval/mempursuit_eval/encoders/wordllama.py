"""WordLlama: static embeddings whose weights ship inside the wheel (no torch, no hub)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = (256, 128, 64)  # the shipped weights, and what they can be cut to (Matryoshka)


class WordLlamaEncoder:
    """The default encoder of the evaluator; `dimension` is one of DIMENSIONS."""

    def __init__(self, dimension: int = DIMENSIONS[0]) -> None:
        from wordllama import WordLlama

        spec = find_spec("wordllama")
        assert spec is not None
        assert spec.origin is not None
        # The wheel carries weights and tokenizer, but by default the tokenizer is looked up in the
        # user's cache and then on a hub; naming the package's folder keeps it offline.
        folder = Path(spec.origin).parent
        self.dimension = dimension
        self._model = WordLlama.load(
            cache_dir=folder, dim=DIMENSIONS[0], trunc_dim=dimension, disable_download=True
        )
        self.name = f"wordllama {version('wordllama')} ({self.dimension}-d)"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding a text, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.asarray(self._model.embed(list(texts)), dtype=np.float32)
