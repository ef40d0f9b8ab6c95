"""Getting everything ready ahead of traffic."""

from __future__ import annotations

import numpy as np

from mempursuit_core.pursuit import select


def warmup() -> None:
    """Load or compile whatever the first :func:`select` of each precision would wait for.

    Safe to call any number of times and from any thread.
    """
    for dtype in (np.float32, np.float64):
        pool = np.eye(3, dtype=dtype)
        select(pool.sum(axis=0), pool, 2)
