"""Checking and normalising what the caller hands in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mempursuit_core.stopping import AdaptiveStop

Floats = NDArray[np.floating[Any]]

_PRECISIONS = (np.dtype(np.float32), np.dtype(np.float64))


def as_vectors(query: ArrayLike, candidates: ArrayLike) -> tuple[Floats, Floats]:
    """Return `query` (d,) and `candidates` (P, d) as contiguous float32 or float64 arrays."""
    if (
        type(query) is type(candidates) is np.ndarray
        and query.dtype in _PRECISIONS
        and candidates.dtype in _PRECISIONS
        and query.flags.carray
        and candidates.flags.carray
        and query.ndim == 1
        and candidates.ndim == 2
        and candidates.shape[1] == query.shape[0] > 0
    ):
        return query, candidates  # what most callers have; a call in vain costs more than a check
    q = as_query(query)
    return q, as_candidates(candidates, q.shape[0])


def as_query(query: ArrayLike) -> Floats:
    """Return `query` as a contiguous float32 or float64 vector, shape (d,)."""
    array = _as_floats(query, "query")
    if array.ndim != 1:
        raise ValueError(f"query must be one vector of shape (d,), got shape {array.shape}")
    if array.size == 0:
        raise ValueError("query must not be empty: its dimension is 0")
    return array


def as_candidates(candidates: ArrayLike, dimension: int) -> Floats:
    """Return `candidates` as a C-contiguous float32 or float64 matrix, shape (P, d)."""
    array = _as_floats(candidates, "candidates")
    if array.size == 0 and array.ndim <= 2 and array.shape[0] == 0:
        return np.empty((0, dimension), dtype=array.dtype)
    if array.ndim != 2:
        raise ValueError(
            "candidates must be a matrix of shape (P, d), one memory a row, "
            f"got shape {array.shape}"
        )
    if array.shape[1] != dimension:
        raise ValueError(
            f"candidates have dimension {array.shape[1]}, but query has dimension {dimension}: "
            "both must come from one encoder"
        )
    return array


def unit(vector: Floats, name: str) -> NDArray[np.float64]:
    """Return `vector` with unit length as float64.

    Raises:
        ValueError: `vector` has NaN or infinity, or is zero.
    """
    row: NDArray[np.float64] = unit_rows(vector.reshape(1, -1), name, rows=False)[0]
    return row


def unit_rows(matrix: Floats, name: str, *, rows: bool = True) -> NDArray[np.float64]:
    """Return `matrix` with rows of unit length as float64, safe for extreme magnitudes.

    Raises:
        ValueError: a row has NaN or infinity, or is zero; the message names it.
    """
    values = matrix.astype(np.float64)
    if values.shape[0] == 0:
        return values
    # Dividing by the largest entry first keeps squares of 1e-200 and 1e200 in range.
    largest = np.abs(values).max(axis=1)
    for bad, what in ((~np.isfinite(largest), "NaN or infinity"), (largest == 0, "only zeros")):
        if bad.any():
            where = f" in row {int(np.flatnonzero(bad)[0])}" if rows else ""
            raise ValueError(f"{name} must be finite and non-zero: found {what}{where}")
    values /= largest[:, None]
    values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    return values


def as_budget(k: int) -> int:
    """Return the budget as an int.

    Raises:
        ValueError: `k` is not a whole number of at least 1.
    """
    if type(k) is int and k > 0:
        return k
    try:
        budget = int(k)
        whole = budget == k
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole or isinstance(k, bool) or budget < 1:
        raise ValueError(f"k must be a whole number of memories, at least 1, got {k!r}")
    return budget


def check_dials(ridge: float, discount: float | str, near_duplicate: float | None) -> None:
    """Raise ValueError for a dial outside its range."""
    if not _is_number(ridge) or not (0 <= ridge < np.inf):
        raise ValueError(f"ridge must be a finite number >= 0, got {ridge!r}")
    if discount != "auto" and not (_is_number(discount) and 0 <= float(discount) <= 1):
        raise ValueError(f'discount must be in [0, 1] or "auto", got {discount!r}')
    if near_duplicate is not None and not (
        _is_number(near_duplicate) and -1 <= near_duplicate <= 1
    ):
        raise ValueError(
            f"near_duplicate must be a cosine in [-1, 1] or None, got {near_duplicate!r}"
        )


def check_stop(stop: AdaptiveStop | None) -> None:
    """Raise ValueError unless `stop` is an AdaptiveStop or None."""
    if stop is not None and not isinstance(stop, AdaptiveStop):
        raise ValueError(f"stop must be an AdaptiveStop or None, got {stop!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _as_floats(values: ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("they are complex")
        if array.dtype.kind not in "fiub":
            array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be numbers of one shape (every vector of the same dimension): {error}"
        ) from None
    narrow = array.dtype == np.float16 or array.dtype == np.float32
    return np.require(array, np.float32 if narrow else np.float64, ["C", "A", "E"])
