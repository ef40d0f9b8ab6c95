"""Compiling with numba: cached between processes where a cache folder can be written."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, which lets them use all SIMD lanes; NaN and infinity keep their meaning.
REORDERED = frozenset({"reassoc", "contract", "nsz"})
# Nobody calls them from Python or C, and making that possible is a third of the compiling.
INTERNAL = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def names(n: int) -> tuple[int, ...]:
    """Return 0 … n − 1, to name rows and states by.

    numpy's integers, because numba compiles a function anew for every Python constant it is given.
    """
    return tuple(cast(int, np.int64(i)) for i in range(n))


def compiled(function: F) -> F:
    """Compile `function` for other compiled functions to call."""
    return _compile(function, **INTERNAL)


def borrowing(function: F) -> F:
    """Compile a function that only reads and writes the arrays it is given, and makes none.

    It needs no reference counts, which are atomic and would cost more than its work.
    """
    return _compile(function, _nrt=False, **INTERNAL)


def summing(function: F) -> F:
    """Compile a loop whose sums may be reordered."""
    return _compile(function, fastmath=set(REORDERED), _nrt=False, **INTERNAL)


def entry_point(function: F) -> F:
    """Compile what Python calls, and keep the machine code on disk where that is possible."""
    dispatcher = _compile(function)
    if not hasattr(dispatcher, "enable_caching"):  # NUMBA_DISABLE_JIT=1
        return dispatcher
    try:
        dispatcher.enable_caching()
    except RuntimeError:
        _warn_uncached()
    else:
        _stamp(dispatcher)
    return dispatcher


def _compile(function: F, **options: Any) -> F:
    return cast(F, numba.njit(nogil=True, error_model="numpy", **options)(function))


@cache
def _warn_uncached() -> None:
    warnings.warn(
        "mempursuit: no folder to keep compiled code in, so every process compiles it again "
        "(about half a minute at the first select or warmup()). Set NUMBA_CACHE_DIR to a writable "
        "folder.",
        RuntimeWarning,
        stacklevel=2,
    )


def _stamp(dispatcher: Any) -> None:
    """Make the cache notice a change in any kernel file, not only in the entry point's own."""
    try:
        file = dispatcher._cache._cache_file
        own = file._source_stamp
    except AttributeError:  # numba's private names; without them only its own check is left
        return
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    file._source_stamp = (own, digest.hexdigest())
