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
def two_products(M: NDArray[Any], i: int, k: int, v: NDArray[Any]) -> tuple[float, float]:
    """Return m_iᵀv of two rows in the pool's precision."""
    s = M.dtype.type(0)
    t = M.dtype.type(0)
    for j in range(M.shape[1]):
        x = v[j]
        s += M[i, j] * x
        t += M[k, j] * x
    return s, t


@summing
def exact_introduction(
    M: NDArray[Any], i: int, q: NDArray[Any], x: NDArray[Any]
) -> tuple[float, float]:
    """Copy row i to x in float64; return m_iᵀq and ‖m_i‖²."""
    along = 0.0
    square = 0.0
    for j in range(M.shape[1]):
        y = np.float64(M[i, j])
        x[j] = y
        along += y * q[j]
        square += y * y
    return along, square


@summing
def two_exact_utilities(
    M: NDArray[Any], i: int, k: int, r: NDArray[Any]
) -> tuple[float, float, float, float]:
    """Return mᵀr and ‖m‖² of two rows as they are, accumulated in float64."""
    missing_i = 0.0
    missing_k = 0.0
    square_i = 0.0
    square_k = 0.0
    for j in range(M.shape[1]):
        x = np.float64(M[i, j])
        y = np.float64(M[k, j])
        missing_i += x * r[j]
        missing_k += y * r[j]
        square_i += x * x
        square_k += y * y
    return missing_i, square_i, missing_k, square_k


@summing
def exact_product(M: NDArray[Any], i: int, x: NDArray[Any]) -> float:
    """Return m_iᵀx, accumulated in float64."""
    s = 0.0
    for j in range(M.shape[1]):
        s += np.float64(M[i, j]) * x[j]
    return s


@summing
def two_exact_products(M: NDArray[Any], i: int, k: int, x: NDArray[Any]) -> tuple[float, float]:
    """Return m_iᵀx of two rows at once, accumulated in float64."""
    s = 0.0
    t = 0.0
    for j in range(M.shape[1]):
        y = x[j]
        s += np.float64(M[i, j]) * y
        t += np.float64(M[k, j]) * y
    return s, t


@summing
def add_four(
    M: NDArray[Any],
    i0: int,
    i1: int,
    i2: int,
    i3: int,
    weights: tuple[float, float, float, float],
    v: NDArray[Any],
) -> None:
    """Add Σ weight · m_i of four rows to v, in v's precision."""
    w0, w1, w2, w3 = weights
    w0, w1, w2, w3 = v.dtype.type(w0), v.dtype.type(w1), v.dtype.type(w2), v.dtype.type(w3)
    for j in range(M.shape[1]):
        v[j] += (w0 * M[i0, j] + w1 * M[i1, j]) + (w2 * M[i2, j] + w3 * M[i3, j])


@summing
def add_scaled(M: NDArray[Any], i: int, weight: float, v: NDArray[Any]) -> None:
    """Add weight · m_i to v, in v's precision."""
    w = v.dtype.type(weight)
    for j in range(M.shape[1]):
        v[j] += w * M[i, j]


@summing
def squared_norm(r: NDArray[Any]) -> float:
    """Return ‖r‖²."""
    s: float = r.dtype.type(0)
    for j in range(r.shape[0]):
        s += r[j] * r[j]
    return s


@summing
def movement(
    old: NDArray[Any], new: NDArray[Any], c: NDArray[Any]
) -> tuple[float, float, float, float]:
    """Return ‖new − old‖², cᵀ(new − old), ‖new‖² and cᵀnew, and copy new over old."""
    far = new.dtype.type(0)
    along = new.dtype.type(0)
    square = new.dtype.type(0)
    common = new.dtype.type(0)
    for j in range(new.shape[0]):
        x = new[j]
        moved = x - old[j]
        far += moved * moved
        along += c[j] * moved
        square += x * x
        common += c[j] * x
        old[j] = x
    return far, along, square, common


@borrowing
def copy(r: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy r into out, in out's precision."""
    for j in range(r.shape[0]):
        out[j] = r[j]
