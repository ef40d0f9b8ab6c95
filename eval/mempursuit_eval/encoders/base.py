"""What the evaluator asks of a text encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Encoder(Protocol):
    """Turns texts into vectors; the same encoder serves every framework of a run."""

    name: str  # as stated beside every figure, e.g. "wordllama (l2_supercat, 256-d, 0.4.0)"
    dimension: int

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding a text, shape (len(texts), dimension); length is not normalised."""
        ...


class EncoderUnavailableError(RuntimeError):
    """An encoder's package, model or key is missing; the message says what to do."""
