"""The vector code against the plain Python it is written beside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from mempursuit_core import pursuit
from mempursuit_core.kernels import lanes

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
PRECISIONS = [np.float32, np.float64]


@numba.njit
def introduce(x: Any, q: Any, c: Any, shift: Any, scale: Any, code: Any) -> Any:
    return lanes.introduce(x, q, c, shift, scale, code)


@numba.njit
def write_bytes(x: Any, c: Any, scale: Any, per_step: Any, code: Any) -> Any:
    return lanes.write_bytes(x, c, scale, per_step, code)


@numba.njit
def byte_products(rows: Any, i0: int, i1: int, i2: int, i3: int, code: Any) -> Any:
    return lanes.byte_products(rows, i0, i1, i2, i3, code)


@numba.njit
def exact_introduction(m: Any, v: Any, x: Any) -> Any:
    return lanes.exact_introduction(m, v, x)


@numba.njit
def exact_product(m: Any, x: Any) -> Any:
    return lanes.exact_product(m, x)


def test_callers_and_kernels_agree_on_the_lanes() -> None:
    """`pursuit` has a copy of it, because it must not load numba before the first call."""
    assert pursuit.LANES == lanes.LANES


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("d", [32, 64, 160, 1536])
def test_introduce(d: int, dtype: type) -> None:
    rng = np.random.default_rng(d)
    M, q, c = (rng.normal(size=shape).astype(dtype) for shape in ((3, d), d, d))
    scale = dtype(20.0)
    shift = c * scale - dtype(128.5)
    for x in M:
        code, expected = np.zeros(d, np.uint8), np.zeros(d, np.uint8)
        found = introduce(x, q, c, shift, scale, code)
        wanted = lanes.plain_introduce(x, q, c, shift, scale, expected)
        # Both sum in the precision, in another order.
        off = 4 * d * np.finfo(dtype).eps
        np.testing.assert_allclose(found[:3], wanted[:3], rtol=0, atol=off)
        assert found[3] == wanted[3]
        if found[3]:  # a number between two codes may go either way
            assert np.abs(code.astype(int) - expected).max() <= 1
            assert (code == expected).mean() > 0.99


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_write_bytes_rounds_to_the_nearest(dtype: type) -> None:
    x = np.linspace(-100, 100, 64).astype(dtype)
    c, code = np.full(64, 2.0, dtype), np.zeros(64, np.uint8)
    assert write_bytes(x, c, dtype(1.2), dtype(0.5), code)
    np.testing.assert_array_equal(code, np.floor(1.2 * x - 1.0 + 128.5).astype(np.uint8))


@pytest.mark.parametrize("place", [0, 31, 32, 63])
@pytest.mark.parametrize(
    ("value", "fits"),
    [(127.4, True), (127.6, False), (-127.4, True), (-127.6, False), (1e6, False), (-1e6, False)],
)
def test_what_a_byte_cannot_hold_is_noticed(value: float, fits: bool, place: int) -> None:
    x = np.full(64, 3.0, np.float32)
    x[place] = value
    zero, one, code = np.zeros(64, np.float32), np.float32(1.0), np.zeros(64, np.uint8)
    assert write_bytes(x, zero, one, np.float32(0.0), code) is fits
    shift = np.full(64, -128.5, np.float32)
    assert introduce(x, x, zero, shift, one, code)[3] is fits
    assert lanes.plain_write_bytes(x, zero, 1.0, 0.0, code) is fits


@pytest.mark.parametrize("d", [32, 96, 1536, lanes.LONGEST])
def test_byte_products(d: int) -> None:
    rng = np.random.default_rng(d)
    rows = rng.integers(0, 256, size=(5, d)).astype(np.uint8)
    rows[1] = 255
    for factor in (rng.integers(0, 256, size=d).astype(np.uint8), np.full(d, 127, np.uint8)):
        signed = factor.view(np.int8).astype(np.int64)
        expected = tuple(int(rows[i].astype(np.int64) @ signed) for i in (1, 4, 0, 3))
        assert byte_products(rows, 1, 4, 0, 3, factor) == expected
        assert lanes.plain_byte_products(rows, 1, 4, 0, 3, factor) == expected


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("d", [32, 160, 1536])
def test_exact_products(d: int, dtype: type) -> None:
    rng = np.random.default_rng(d)
    m, v, x = rng.normal(size=d).astype(dtype), rng.normal(size=d), np.zeros(d)
    wide = m.astype(np.float64)
    found = exact_introduction(m, v, x)
    np.testing.assert_array_equal(x, wide)
    np.testing.assert_allclose(found, (wide @ v, wide @ wide), rtol=0, atol=1e-11)
    assert exact_product(m, v) == pytest.approx(wide @ v, abs=1e-11)


@pytest.mark.parametrize("processor", [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"}])
def test_other_processors(processor: dict[str, str], tmp_path: Path) -> None:
    """Code made for any processor: without byte products of its own, with narrow vectors."""
    tests = [str(Path(__file__).with_name(name)) for name in ("test_lanes.py", "test_oracle.py")]
    chosen = "byte_products or write_bytes or introduce or (test_own_reference and float32)"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", f"({chosen}) and not other", *tests],
        env={**os.environ, **processor, "NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
