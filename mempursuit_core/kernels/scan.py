"""Reading rows of the pool: the only code that touches all d numbers of a memory.

Scans run in the pool's own precision, exact values in float64. A row's value never depends on
where it stands: equal rows get equal bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.jit import borrowing, summing


@summing
def relevance_scan(
    M: NDArray[Any], q: NDArray[Any], b: NDArray[Any], first: NDArray[Any], norm: NDArray[Any]
) -> None:
    """Set b_i = m_iᵀq, first_i = m_iᵀm_0 and norm_i = ‖m_i‖² of the rows as they are.

    One pass over M (P, d), as long as memory takes to deliver it: the cosines to row 0 cost
    nothing, and backbones hand over the best match first. Two rows at a time keep memory busy;
    an odd last row is read twice, so that every row takes the same path.
    """
    P, d = M.shape
    for start in range(0, P, 2):
        i, k = start, min(start + 1, P - 1)
        along_i = M.dtype.type(0)
        along_k = M.dtype.type(0)
        first_i = M.dtype.type(0)
        first_k = M.dtype.type(0)
        square_i = M.dtype.type(0)
        square_k = M.dtype.type(0)
        for j in range(d):
            x = M[i, j]
            y = M[k, j]
            along_i += x * q[j]
            along_k += y * q[j]
            first_i += x * M[0, j]
            first_k += y * M[0, j]
            square_i += x * x
            square_k += y * y
        b[i] = along_i
        b[k] = along_k
        first[i] = first_i
        first[k] = first_k
        norm[i] = square_i
        norm[k] = square_k


@summing
def four_products(
    M: NDArray[Any], i0: int, i1: int, i2: int, i3: int, v: NDArray[Any]
) -> tuple[float, float, float, float]:
    """Return m_iᵀv of four rows at once: v is loaded once, and four sums hide the latency."""
    s0 = M.dtype.type(0)
    s1 = M.dtype.type(0)
    s2 = M.dtype.type(0)
    s3 = M.dtype.type(0)
    for j in range(M.shape[1]):
        x = v[j]
        s0 += M[i0, j] * x
        s1 += M[i1, j] * x
        s2 += M[i2, j] * x
        s3 += M[i3, j] * x
    return s0, s1, s2, s3


@summing
def exact_products(
    M: NDArray[Any], i: int, q: NDArray[Any], r: NDArray[Any]
) -> tuple[float, float, float]:
    """Return m_iᵀq, m_iᵀr and ‖m_i‖² of row i as it is, accumulated in float64."""
    along = 0.0
    missing = 0.0
    square = 0.0
    for j in range(M.shape[1]):
        x = np.float64(M[i, j])
        along += x * q[j]
        missing += x * r[j]
        square += x * x
    return along, missing, square


@summing
def exact_product(M: NDArray[Any], i: int, k: int) -> float:
    """Return m_iᵀm_k of two rows as they are, accumulated in float64."""
    s = 0.0
    for j in range(M.shape[1]):
        s += np.float64(M[i, j]) * np.float64(M[k, j])
    return s


@summing
def four_exact_products(
    M: NDArray[Any], i0: int, i1: int, i2: int, i3: int, k: int
) -> tuple[float, float, float, float]:
    """Return m_iᵀm_k of four rows i at once, accumulated in float64."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    for j in range(M.shape[1]):
        x = np.float64(M[k, j])
        s0 += np.float64(M[i0, j]) * x
        s1 += np.float64(M[i1, j]) * x
        s2 += np.float64(M[i2, j]) * x
        s3 += np.float64(M[i3, j]) * x
    return s0, s1, s2, s3


@summing
def subtract_four(
    M: NDArray[Any],
    i0: int,
    i1: int,
    i2: int,
    i3: int,
    weights: tuple[float, float, float, float],
    r: NDArray[Any],
) -> None:
    """Take Σ weight · m_i of four rows off r, in float64."""
    w0, w1, w2, w3 = weights
    for j in range(M.shape[1]):
        r[j] -= (w0 * np.float64(M[i0, j]) + w1 * np.float64(M[i1, j])) + (
            w2 * np.float64(M[i2, j]) + w3 * np.float64(M[i3, j])
        )


@summing
def squared_norm(r: NDArray[Any]) -> float:
    """Return ‖r‖²."""
    s = 0.0
    for j in range(r.shape[0]):
        s += r[j] * r[j]
    return s


@borrowing
def copy(r: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy r into out, in out's precision."""
    for j in range(r.shape[0]):
        out[j] = r[j]
