"""Eight-bit copies of the pool, and how far what they say can be off.

Scalar quantisation as in vector indexes: memory i is centre + step_i · u_i + error, u_i whole
numbers in [−127, 127]. A copy is a quarter or an eighth of its memory, stays in a small cache, and
is multiplied in whole numbers. What rounding took away is bounded, so a code never decides; it
says who need not be read at all. The centre is the mean of the first memories: what all have in
common costs no precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_core.kernels.jit import borrowing
from mempursuit_core.kernels.lanes import byte_products, write_bytes
from mempursuit_core.kernels.scan import add_scaled, squared_norm

CENTRE_OF = 8  # memories the centre is the mean of
HALF = 0.505  # a rounding error in steps, and the precision's own in finding it
WIDTH = 4.0  # standard deviations of a vector's numbers that a code holds at first
WIDER = 1.25  # how much more it is given as long as it does not fit


@borrowing
def set_centre(M: NDArray[Any], centre: NDArray[Any]) -> None:
    """Set the centre."""
    n = min(CENTRE_OF, M.shape[0])
    for j in range(centre.shape[0]):
        centre[j] = 0.0
    for i in range(n):
        add_scaled(M, i, 1.0 / (n * np.sqrt(squared_norm(M[i]))), centre)


@borrowing
def likely_step(length: float, d: int) -> float:
    """Return the step that holds most vectors of d numbers and this length."""
    step: float = WIDTH * length / (127.0 * np.sqrt(d)) + 1e-30
    return step


@borrowing
def set_byte_shift(centre: NDArray[Any], step: float, shift: NDArray[Any]) -> None:
    """Set what is taken off a memory in steps: the centre, and half a step and 128 added."""
    per_step, middle = centre.dtype.type(1.0 / step), centre.dtype.type(128.5)
    for j in range(centre.shape[0]):
        shift[j] = centre[j] * per_step - middle


@borrowing
def encode(
    m: NDArray[Any], inverse: float, centre: NDArray[Any], step: float, code: NDArray[Any]
) -> float:
    """Write the code of the unit vector m · inverse; return its step, wider if it did not fit."""
    number = m.dtype.type
    while not write_bytes(m, centre, number(inverse / step), number(1.0 / step), code):
        step *= WIDER
    return step


@borrowing
def encode_factor(v: NDArray[Any], step: float, rows: NDArray[Any]) -> tuple[float, int]:
    """Write a vector's code as the factor of `byte_products`; return its step and its sum.

    It goes to the first of two rows of bytes, the second of which are ones.
    """
    number, factor = v.dtype.type, rows[0]
    while not write_bytes(v, v, number(1.0 / step), number(0.0), factor):
        step *= WIDER
    for j in range(v.shape[0]):
        factor[j] ^= 128  # less 128, as a signed byte
    total, _, _, _ = byte_products(rows, 1, 1, 1, 1, factor)
    return step, total
