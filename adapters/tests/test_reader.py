"""`Reader`: never raises, counts everything, warns once per cause."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from mempursuit_adapters.pool import Pool
from mempursuit_adapters.reader import Reader
from mempursuit_core import Dials, select

D = 6


def make_pool(seed: int = 0, size: int = 10) -> Pool:
    rng = np.random.default_rng(seed)
    return Pool(
        [f"{seed}-{i}" for i in range(size)], rng.normal(size=(size, D)), rng.normal(size=D)
    )


def reader() -> Reader:
    return Reader("toy", Dials())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "mempursuit.toy"]


def fails(error: BaseException) -> Any:
    def fetch() -> Pool:
        raise error

    return fetch


def test_it_chooses_as_select_does(caplog: pytest.LogCaptureFixture) -> None:
    pool, toy = make_pool(), reader()
    choice = toy.read(lambda: pool, 4)
    assert choice is not None
    assert choice.positions == tuple(select(pool.query, pool.vectors, 4).indices)
    assert toy.last is choice
    assert toy.stats().searches == 1
    assert toy.stats().fallbacks == {}
    assert toy.stats().pool_size_max == toy.stats().pool_size_median == 10
    assert 0 < toy.stats().added_ms_median <= toy.stats().added_ms_p95
    assert warnings(caplog) == []


def test_a_failing_fetch_means_the_frameworks_own_top_k(caplog: pytest.LogCaptureFixture) -> None:
    toy = reader()
    for n in range(3):
        assert toy.read(fails(ConnectionError(f"store down {n}")), 4) is None
    assert toy.read(fails(KeyError("vector")), 4) is None
    stats = toy.stats()
    assert stats.searches == 4
    assert stats.fallbacks == {"ConnectionError": 3, "KeyError": 1}
    first, second = warnings(caplog)
    assert first.startswith("toy: ")
    assert "ConnectionError: store down 0" in first
    assert "KeyError" in second
    assert toy.last is None


def test_an_error_that_cannot_describe_itself(caplog: pytest.LogCaptureFixture) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert reader().read(fails(MuteError()), 4) is None
    assert "MuteError: no message" in warnings(caplog)[0]


def test_a_long_error_message_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    assert reader().read(fails(ValueError("x" * 10_000)), 4) is None
    assert len(warnings(caplog)[0]) < 600


@pytest.mark.parametrize("handed", [None, [], "pool", Pool(None, None, None)])  # type: ignore[arg-type]
def test_a_fetch_that_hands_back_nonsense(handed: Any) -> None:
    toy = reader()
    assert toy.read(lambda: handed, 4) is None
    assert sum(toy.stats().fallbacks.values()) == 1


def test_leaving_the_program_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        reader().read(fails(KeyboardInterrupt()), 4)
    with pytest.raises(asyncio.CancelledError):
        reader().read(fails(asyncio.CancelledError()), 4)


def test_memories_that_cannot_be_judged_are_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool, toy = make_pool(), reader()
    vectors: list[Any] = list(pool.vectors)
    vectors[1], vectors[2], vectors[3] = None, None, np.ones(D + 1)
    for _ in range(5):
        choice = toy.read(lambda: Pool(pool.ids, vectors, pool.query), 4)
        assert choice is not None
        assert choice.positions[1:4] == (1, 2, 3)
    assert toy.stats().fallbacks == {"missing_vector": 5, "dimension_mismatch": 5}
    assert len(warnings(caplog)) == 2
    assert "2 of 10 memories" in warnings(caplog)[0]


def test_two_readers_warn_and_remember_on_their_own(caplog: pytest.LogCaptureFixture) -> None:
    a, b = reader(), reader()
    chosen = a.read(lambda: make_pool(1), 2)
    b.read(lambda: make_pool(2), 2)
    assert a.last is chosen
    a.fell_back("cause", "detail")
    b.fell_back("cause", "detail")
    assert len(warnings(caplog)) == 2


def test_last_is_the_callers_own_across_threads() -> None:
    a, b = reader(), reader()

    def search(seed: int) -> bool:
        mine = a.read(lambda: make_pool(seed), 3)
        b.read(lambda: make_pool(seed + 1000), 3)
        return a.last is mine

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(search, range(200)))
    assert a.stats().searches == 200
    assert a.last is not None  # this thread made none: the newest of all


def test_last_is_the_callers_own_across_tasks() -> None:
    toy = reader()

    async def search(seed: int) -> bool:
        mine = toy.read(lambda: make_pool(seed), 3)
        await asyncio.sleep(0)
        return toy.last is mine

    async def run() -> list[bool]:
        return await asyncio.gather(*(search(i) for i in range(64)))

    assert all(asyncio.run(run()))


def test_a_choice_read_in_a_worker_thread_can_be_made_the_callers() -> None:
    toy = reader()

    async def search(seed: int) -> bool:
        choice = await asyncio.to_thread(toy.read, lambda: make_pool(seed), 3)
        assert choice is not None
        toy.remember(choice)
        await asyncio.sleep(0)
        return toy.last is choice

    async def run() -> list[bool]:
        toy.read(lambda: make_pool(99), 3)
        return await asyncio.gather(*(search(i) for i in range(16)))

    assert all(asyncio.run(run()))


def test_one_thread_does_not_remember_ever_more_readers() -> None:
    from mempursuit_adapters import reader as module

    kept = [reader() for _ in range(3 * module.KEPT_READERS)]
    for toy in kept:
        toy.read(lambda: make_pool(), 2)
    assert len(module._mine.get()) == module.KEPT_READERS
    assert all(toy.last is not None for toy in kept)


def test_the_logger_hangs_under_mempursuit_which_is_silent_by_itself() -> None:
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("mempursuit").handlers)
