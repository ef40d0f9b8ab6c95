"""What can go wrong under a framework, and hearing what an adapter says about it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np


class Fault(str, Enum):
    """A fault to inject into the store; the framework's own search keeps working under it."""

    MISSING_VECTOR = "missing_vector"
    OTHER_DIMENSION = "other_dimension"
    NOT_FINITE = "not_finite"
    ZERO_VECTOR = "zero_vector"
    VECTORS_UNREADABLE = "vectors_unreadable"
    WIDE_SEARCH_FAILS = "wide_search_fails"

    @property
    def hits_one_memory(self) -> bool:
        """Whether the other memories can still be judged."""
        return self not in (Fault.VECTORS_UNREADABLE, Fault.WIDE_SEARCH_FAILS)

    def spoil(self, vector: Any) -> Any:
        """Return what a store with this fault hands over instead of `vector`.

        Raises:
            OSError: the fault is that nothing can be read.
        """
        if self is Fault.MISSING_VECTOR:
            return None
        row = np.array(vector, dtype=np.float32)
        if self is Fault.OTHER_DIMENSION:
            return np.concatenate([row, row])
        if self is Fault.NOT_FINITE:
            row[0] = np.nan
            return row
        if self is Fault.ZERO_VECTOR:
            return np.zeros_like(row)
        raise OSError("the store cannot be read")


@contextmanager
def warnings_of(framework: str) -> Iterator[list[str]]:
    """Collect what is logged under `mempursuit.<framework>` at WARNING and above."""
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    ear, logger = Ear(logging.WARNING), logging.getLogger(f"mempursuit.{framework}")
    logger.addHandler(ear)
    try:
        yield heard
    finally:
        logger.removeHandler(ear)
