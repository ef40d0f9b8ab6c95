"""Loops over all d numbers of a vector that numba's own loops are fast enough for; see lanes.

They run in the precision of what they are given. A row's value never depends on where it stands:
equal rows get equal bits.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from mempursuit_core.kernels.jit import borrowing, summing


@summing
def product(M: NDArray[Any], i: int, v: NDArray[Any]) -> float:
    """Return m_iᵀv in the pool's precision."""
    s: float = M.dtype.type(0)
    for j in range(M.shape[1]):
        s += M[i, j] * v[j]
    return s


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
