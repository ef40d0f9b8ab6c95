"""Cross-encoder rerankers, opt-in: they need sentence-transformers (and torch) and a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from mempursuit_adapters import Pool
from mempursuit_adapters.triage import first_places
from mempursuit_eval.selectors.base import SelectorUnavailableError

BATCH = 128  # question–memory pairs a forward pass; the paper's Table 12


class CrossEncoderReranker:
    """Scores every question–memory pair with `model`, a hub name or a folder; the best stay."""

    def __init__(self, name: str, model: str, batch_size: int = BATCH) -> None:
        self.name = name
        self.batch_size = batch_size
        self._model = load_cross_encoder(model)

    def pick(self, pool: Pool, k: int, question: str) -> Sequence[int]:
        """Return the `k` positions of the highest scores, best first; ties keep native order."""
        native = first_places(pool.ids)
        pairs = [(question, pool.texts[i]) for i in native]
        if not pairs:
            return []
        scores = np.asarray(
            self._model.predict(pairs, batch_size=self.batch_size, show_progress_bar=False)
        )
        return [native[i] for i in np.argsort(-scores, kind="stable")[:k]]


@cache  # arguments are checked before a run; the model is loaded once
def load_cross_encoder(model: str) -> Any:
    """Return a sentence-transformers CrossEncoder.

    Raises:
        SelectorUnavailableError: the package is missing or the model cannot be loaded.
    """
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise SelectorUnavailableError(
            f"--selectors: ce:{model} needs sentence-transformers (and torch): "
            "pip install 'mempursuit[minilm]'"
        ) from None
    try:
        return CrossEncoder(model)
    except Exception as error:
        raise SelectorUnavailableError(
            f"--selectors: ce:{model} could not be loaded ({error}). Is the model hub reachable? "
            "A local folder works too: ce:/path/to/model"
        ) from error
