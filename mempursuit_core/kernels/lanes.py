"""The innermost loops in LLVM's own vectors: what its vectoriser does not find in numba's loops.

All lengths are multiples of LANES.

Each function is written twice, as plain Python and as the vector code that is compiled in its
place; the first says what the second does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic
from numpy.typing import NDArray

LANES = 32
LONGEST = 65_536  # of 255 · 127 fit
AHEAD = 4  # rows asked for before they are read, which hides what memory takes to answer
ir = cgutils.ir
BYTE, WORD, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
FUSED = ("contract",)  # a product and a sum may be one instruction
BYTES, WORDS = ir.VectorType(BYTE, LANES), ir.VectorType(WORD, LANES)
DOUBLES = ir.VectorType(ir.DoubleType(), LANES)


def has_byte_products() -> bool:
    """Tell whether code is made for a processor that multiplies and adds bytes four by four."""
    asked, host = numba.config.CPU_FEATURES, numba.config.CPU_NAME is None
    features = asked if asked is not None else get_host_cpu_features() if host else ""
    return "+avx512vnni" in features and "+avx512vl" in features


def plain_write_bytes(
    x: NDArray[Any], c: NDArray[Any], scale: float, per_step: float, code: NDArray[Any]
) -> bool:
    """Write ⌊scale · x − per_step · c + 128.5⌋ to the bytes of `code`; tell whether all fitted.

    x and c are (d,) floats of one precision.
    """
    wanted = np.trunc(scale * x - per_step * c + 128.5)
    code[:] = wanted.astype(np.int64).astype(np.uint8)
    return bool(wanted.min() >= 1 and wanted.max() <= 255)


def plain_introduce(
    x: NDArray[Any],
    q: NDArray[Any],
    c: NDArray[Any],
    shift: NDArray[Any],
    scale: float,
    code: NDArray[Any],
) -> tuple[float, float, float, bool]:
    """Return xᵀq, xᵀc and ‖x‖², and whether ⌊scale · x − shift⌋ fitted the bytes of `code`.

    Everything a row is read for at first, in the time memory takes to deliver it; x must be a row
    of a matrix, the next of which are asked for meanwhile.
    """
    wanted = np.trunc(scale * x - shift)
    code[:] = wanted.astype(np.int64).astype(np.uint8)
    return float(x @ q), float(x @ c), float(x @ x), bool(wanted.min() >= 1 and wanted.max() <= 255)


def plain_exact_introduction(
    m: NDArray[Any], v: NDArray[Any], x: NDArray[Any]
) -> tuple[float, float]:
    """Copy a row to x in float64; return mᵀv and ‖m‖² of it as it is."""
    x[:] = m
    return float(x @ v), float(x @ x)


def plain_exact_product(m: NDArray[Any], x: NDArray[Any]) -> float:
    """Return mᵀx of a row as it is, in float64."""
    return float(m.astype(np.float64) @ x)


def plain_byte_products(
    rows: NDArray[Any], i0: int, i1: int, i2: int, i3: int, code: NDArray[Any]
) -> tuple[int, int, int, int]:
    """Return the products of four rows of bytes with one row whose bytes are signed.

    Their length is LONGEST at most, so that the sums fit 32 bits.
    """
    wide = code.view(np.int8).astype(np.int64)
    s0, s1, s2, s3 = (int(rows[i].astype(np.int64) @ wide) for i in (i0, i1, i2, i3))
    return s0, s1, s2, s3


def _load(builder: Any, start: Any, at: Any, kind: Any) -> Any:
    place = builder.bitcast(builder.gep(start, [at]), kind.as_pointer())
    return builder.load(place, align=1)


def _fetch(builder: Any, start: Any, at: Any, kind: Any) -> None:
    """Ask the caches for a strip that is read soon; beyond the array nothing happens."""
    name = "llvm.prefetch.p0i8"
    fetch = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), WORD, WORD, WORD])
    function = cgutils.get_or_insert_function(builder.module, fetch, name)
    first = builder.bitcast(builder.gep(start, [at]), BYTE.as_pointer())
    for line in range(0, kind.count * (4 if kind.element == ir.FloatType() else 8), 64):
        read, near, data = WORD(0), WORD(2), WORD(1)
        builder.call(function, [builder.gep(first, [LONG(line)]), read, near, data])


def _splat(builder: Any, value: Any) -> Any:
    kind = ir.VectorType(value.type, LANES)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, WORD(0))
    return builder.shuffle_vector(one, one, ir.Constant(WORDS, [0] * LANES))


def _reduce(builder: Any, how: str, vector: Any) -> Any:
    name = f"llvm.vector.reduce.{how}.v{vector.type.count}i32"
    kind = ir.FunctionType(WORD, [vector.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [vector])


def _strips(
    builder: Any, length: Any, carried: list[Any], body: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Run `body(at, carried)` for LANES numbers at a time; return what it carries at the end."""
    before, loop = builder.block, builder.append_basic_block("strip")
    after = builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    at = builder.phi(LONG)
    at.add_incoming(LONG(0), before)
    held = [builder.phi(first.type) for first in carried]
    for one, first in zip(held, carried, strict=True):
        one.add_incoming(first, before)
    results = body(at, held)
    for one, result in zip(held, results, strict=True):
        one.add_incoming(result, loop)
    further = builder.add(at, LONG(LANES))
    at.add_incoming(further, loop)
    builder.cbranch(builder.icmp_signed("<", further, length), loop, after)
    builder.position_at_end(after)
    return results


def _array(context: Any, builder: Any, signature: Any, values: Any, place: int) -> Any:
    return context.make_array(signature.args[place])(context, builder, values[place])


def _store_bytes(builder: Any, wanted: Any, start: Any, at: Any, largest: Any) -> Any:
    """Store whole numbers as bytes; return the largest, less one, of these and those before."""
    whole = builder.fptosi(wanted, WORDS)
    place = builder.bitcast(builder.gep(start, [at]), BYTES.as_pointer())
    builder.store(builder.trunc(whole, BYTES), place, align=1)
    # One less, so that 0 is far outside too.
    below = builder.sub(whole, ir.Constant(WORDS, [1] * LANES))
    return builder.select(builder.icmp_unsigned(">", below, largest), below, largest)


def _fits(builder: Any, largest: Any) -> Any:
    return builder.icmp_unsigned("<", _reduce(builder, "umax", largest), WORD(255))


def _generate_write_bytes(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    x, c, code = (_array(context, builder, signature, values, place) for place in (0, 1, 4))
    length = cgutils.unpack_tuple(builder, x.shape, 1)[0]
    numbers = ir.VectorType(x.data.type.pointee, LANES)
    scale, per_step = (_splat(builder, value) for value in values[2:4])
    middle = ir.Constant(numbers, [128.5] * LANES)

    def body(at: Any, largest: list[Any]) -> list[Any]:
        wanted = builder.fmul(_load(builder, x.data, at, numbers), scale, flags=FUSED)
        shift = builder.fmul(_load(builder, c.data, at, numbers), per_step, flags=FUSED)
        shift = builder.fsub(shift, middle, flags=FUSED)
        wanted = builder.fsub(wanted, shift, flags=FUSED)
        return [_store_bytes(builder, wanted, code.data, at, largest[0])]

    return _fits(builder, *_strips(builder, length, [ir.Constant(WORDS, None)], body))


def _generate_introduce(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    x, q, c, shift, code = (
        _array(context, builder, signature, values, place) for place in (0, 1, 2, 3, 5)
    )
    length = cgutils.unpack_tuple(builder, x.shape, 1)[0]
    ahead = builder.mul(length, LONG(AHEAD))
    number = x.data.type.pointee
    numbers = ir.VectorType(number, LANES)
    scale = _splat(builder, values[4])

    def body(at: Any, held: list[Any]) -> list[Any]:
        along, common, square, largest = held
        _fetch(builder, x.data, builder.add(at, ahead), numbers)
        part = _load(builder, x.data, at, numbers)
        wanted = builder.fmul(part, scale, flags=FUSED)
        wanted = builder.fsub(wanted, _load(builder, shift.data, at, numbers), flags=FUSED)
        return [
            _add_product(builder, along, part, _load(builder, q.data, at, numbers)),
            _add_product(builder, common, part, _load(builder, c.data, at, numbers)),
            _add_product(builder, square, part, part),
            _store_bytes(builder, wanted, code.data, at, largest),
        ]

    zero = ir.Constant(numbers, None)
    *sums, largest = _strips(builder, length, [zero, zero, zero, ir.Constant(WORDS, None)], body)
    totals = [_total(builder, one) for one in sums]
    return context.make_tuple(builder, signature.return_type, [*totals, _fits(builder, largest)])


def _wide(builder: Any, part: Any) -> Any:
    """Return a strip in float64."""
    return part if part.type == DOUBLES else builder.fpext(part, DOUBLES)


def _add_product(builder: Any, total: Any, one: Any, other: Any) -> Any:
    return builder.fadd(total, builder.fmul(one, other, flags=FUSED), flags=FUSED)


def _total(builder: Any, vector: Any) -> Any:
    """Return the sum over a vector of floats, in float64."""
    number = vector.type.element
    single = number == ir.FloatType()
    name = f"llvm.vector.reduce.fadd.v{LANES}f{32 if single else 64}"
    kind = ir.FunctionType(number, [number, vector.type])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    total = builder.call(function, [ir.Constant(number, 0.0), vector], fastmath=("reassoc",))
    return builder.fpext(total, ir.DoubleType()) if single else total


def _generate_exact_introduction(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    m, v, x = (_array(context, builder, signature, values, place) for place in (0, 1, 2))
    length = cgutils.unpack_tuple(builder, m.shape, 1)[0]
    numbers = ir.VectorType(m.data.type.pointee, LANES)

    def body(at: Any, held: list[Any]) -> list[Any]:
        part = _wide(builder, _load(builder, m.data, at, numbers))
        place = builder.bitcast(builder.gep(x.data, [at]), DOUBLES.as_pointer())
        builder.store(part, place, align=1)
        along = _add_product(builder, held[0], part, _load(builder, v.data, at, DOUBLES))
        return [along, _add_product(builder, held[1], part, part)]

    sums = _strips(builder, length, [ir.Constant(DOUBLES, None)] * 2, body)
    totals = [_total(builder, one) for one in sums]
    return context.make_tuple(builder, signature.return_type, totals)


def _generate_exact_product(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    m, x = (_array(context, builder, signature, values, place) for place in (0, 1))
    length = cgutils.unpack_tuple(builder, m.shape, 1)[0]
    numbers = ir.VectorType(m.data.type.pointee, LANES)

    def body(at: Any, held: list[Any]) -> list[Any]:
        part = _wide(builder, _load(builder, m.data, at, numbers))
        return [_add_product(builder, held[0], part, _load(builder, x.data, at, DOUBLES))]

    return _total(builder, *_strips(builder, length, [ir.Constant(DOUBLES, None)], body))


def _generate_byte_products(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    rows = _array(context, builder, signature, values, 0)
    code = _array(context, builder, signature, values, 5)
    length = cgutils.unpack_tuple(builder, rows.shape, 2)[1]
    starts = [builder.gep(rows.data, [builder.mul(i, length)]) for i in values[1:5]]
    native = has_byte_products()
    sums = ir.VectorType(WORD, LANES // 4 if native else LANES)

    def body(at: Any, held: list[Any]) -> list[Any]:
        part = _load(builder, code.data, at, BYTES)
        pairs = list(zip(held, (_load(builder, one, at, BYTES) for one in starts), strict=True))
        if not native:
            part = builder.sext(part, sums)
            return [
                builder.add(one, builder.mul(builder.zext(row, sums), part)) for one, row in pairs
            ]
        kind = ir.FunctionType(sums, [sums] * 3)
        name = "llvm.x86.avx512.vpdpbusd.256"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        part = builder.bitcast(part, sums)
        return [
            builder.call(function, [one, builder.bitcast(row, sums), part]) for one, row in pairs
        ]

    totals = _strips(builder, length, [ir.Constant(sums, None)] * 4, body)
    totals = [builder.sext(_reduce(builder, "add", total), LONG) for total in totals]
    return context.make_tuple(builder, signature.return_type, totals)


if numba.config.DISABLE_JIT:
    introduce, write_bytes, byte_products = plain_introduce, plain_write_bytes, plain_byte_products
    exact_introduction, exact_product = plain_exact_introduction, plain_exact_product
else:

    @intrinsic
    def introduce(typing, x, q, c, shift, scale, code):  # type: ignore[no-untyped-def]
        three = (numba.float64,) * 3
        result = numba.types.Tuple((*three, numba.boolean))
        return result(x, q, c, shift, x.dtype, code), _generate_introduce

    @intrinsic
    def write_bytes(typing, x, c, scale, per_step, code):  # type: ignore[no-untyped-def]
        number = x.dtype
        return numba.boolean(x, c, number, number, code), _generate_write_bytes

    @intrinsic
    def byte_products(typing, rows, i0, i1, i2, i3, code):  # type: ignore[no-untyped-def]
        four = numba.types.UniTuple(numba.int64, 4)
        return four(rows, numba.int64, numba.int64, numba.int64, numba.int64, code), (
            _generate_byte_products
        )

    @intrinsic
    def exact_introduction(typing, m, v, x):  # type: ignore[no-untyped-def]
        two = numba.types.UniTuple(numba.float64, 2)
        return two(m, v, x), _generate_exact_introduction

    @intrinsic
    def exact_product(typing, m, x):  # type: ignore[no-untyped-def]
        return numba.float64(m, x), _generate_exact_product
