"""Timing contenders against each other: same inputs, same run, in alternating order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Input = TypeVar("Input")

# contender -> (n,) milliseconds; the i-th figures of all contenders are of one input, one moment
Samples = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Contender(Generic[Input]):
    """Something to be timed.

    Attributes:
        name: key of its samples.
        call: what is timed, on one input.
        around: entered before the clock starts, left after it stopped.
        parts: read inside `around` after the clock stopped: further figures of that call by name,
            in ms, kept as samples of their own.
    """

    name: str
    call: Callable[[Input], object]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    parts: Callable[[], Mapping[str, float]] = dict


def alternate(
    contenders: Sequence[Contender[Input]],
    inputs: Sequence[Input],
    *,
    rounds: int = 1,
    warmup: int = 3,
    pause: float = 0.001,
    stagger: int = 0,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> Samples:
    """Time every contender on every input, `rounds` times over.

    Contenders take turns on one input before the next comes, so what slows the machine for a while
    slows all of them. Who begins rotates, and every other turn runs backwards, so nobody always
    profits from what another left in the caches.

    Args:
        contenders: at least one; names (those of `parts` too) must differ.
        inputs: at least one.
        rounds: passes over `inputs`.
        warmup: inputs every contender is called on before, untimed.
        pause: seconds slept before each call. On a busy machine a process that has just slept gets
            a whole time slice; without it whatever `around` does would use up the contender's.
        stagger: how many inputs each contender is ahead of the one before it. With 0 all are on one
            input, and whoever comes first warms the caches for the others; from 1 on, nobody gets
            an input that the others have just used. Samples stay in the order of the inputs.
        tick: told after each input how many of how many are done.

    Raises:
        ValueError: no contenders or inputs, or `rounds` below 1.
    """
    if not contenders or not inputs or rounds < 1:
        raise ValueError("there must be at least one contender, one input and one round")
    for given in inputs[:warmup]:
        for contender in contenders:
            _run(contender, given, 0)
    samples: Samples = {}
    total = rounds * len(inputs)
    for turn in range(total):
        first = turn % len(contenders)
        order = [*contenders[first:], *contenders[:first]]
        # The turns change direction once all have been first, or a rotation of two never would.
        if turn // len(contenders) % 2:
            order.reverse()
        past = turn - turn % len(inputs)
        for contender in order:
            ahead = stagger * contenders.index(contender)
            place = (turn + ahead) % len(inputs)
            for name, ms in _run(contender, inputs[place], pause).items():
                samples.setdefault(name, np.full(total, np.nan))[past + place] = ms
        tick(turn + 1, total)
    uneven = [name for name, ms in samples.items() if np.isnan(ms).any()]
    if uneven:
        raise ValueError(f"every name must be given once a turn: {', '.join(uneven)}")
    return samples


@dataclass(frozen=True)
class Summary:
    """Median and 95th percentile of `n` samples, in the samples' unit."""

    median: float
    p95: float
    n: int

    @classmethod
    def of(cls, samples: NDArray[np.float64]) -> Summary:
        """Return the summary of (n,) samples."""
        return cls(float(np.median(samples)), float(np.percentile(samples, 95)), len(samples))


def added(samples: Samples, with_: str, without: str) -> Summary:
    """Return the summary of what `with_` took longer than `without`, input by input."""
    return Summary.of(samples[with_] - samples[without])


def ratio(samples: Samples, of: str, to: str) -> float:
    """Return the median, input by input, of `of`'s time in units of `to`'s."""
    return float(np.median(samples[of] / samples[to]))


def _run(contender: Contender[Input], given: Input, pause: float) -> dict[str, float]:
    with contender.around():
        time.sleep(pause)
        began = time.perf_counter()
        contender.call(given)
        ms = 1000 * (time.perf_counter() - began)
        return {contender.name: ms, **contender.parts()}
