"""Any sentence-transformers model; needs the extra `minilm` and, the first time, the model hub."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mempursuit_eval.encoders.base import EncoderUnavailableError

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


class SentenceTransformerEncoder:
    """`model` is a hub name or a folder."""

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer, __version__
        except ImportError:
            raise EncoderUnavailableError(
                f"--embedder: {model} needs sentence-transformers (and torch): "
                "pip install 'mempursuit[minilm]'"
            ) from None
        try:
            self._model = SentenceTransformer(model)
        except Exception as error:
            raise EncoderUnavailableError(
                f"--embedder: {model} could not be loaded ({error}). Is the model hub reachable? "
                "A local folder works too: --embedder st:/path/to/model"
            ) from error
        dimension = self._model.get_sentence_embedding_dimension()
        self.dimension = int(dimension or self._model.encode(["?"]).shape[1])
        self.name = f"{model} ({self.dimension}-d, sentence-transformers {__version__})"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding a text, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.asarray(
            self._model.encode(list(texts), show_progress_bar=False), dtype=np.float32
        )
