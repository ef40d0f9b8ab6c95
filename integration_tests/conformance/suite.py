"""The abstract test class that every adapter must pass."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from integration_tests.conformance.data import CountingEncoder, Memory, World, make_world
from integration_tests.conformance.faults import Fault, warnings_of
from integration_tests.conformance.snapshot import Snapshot
from mempursuit_adapters import Choice, Handle, Pool, choose
from mempursuit_core import Dials, preset, select

K = 5
POOL = 20  # of 48 stored
THREADS = 16
TASKS = 64

# What a framework or its adapter may be unable to do. A subclass that leaves one out says why in
# `cannot`; the checks of it are then skipped with that reason.
CAPABILITIES = {
    "async",  # `asearch`: concurrent tasks on one instance
    "empty_store",  # searching before anything is stored
    "install",  # covering a whole class
    "other_calls",  # calls besides the search that touch the store
    "pool_below_budget",  # attaching with a pool_size below the k searched for
    "threads",  # concurrent searches on one instance
    *(fault.value for fault in Fault),
}


class AdapterConformance(ABC):
    """Checks that one adapter does what every adapter must.

    Subclass it with a name that starts with `Test`, give the abstract members, and override the
    others where the framework differs. `build` is called several times a test, each time with an
    encoder and a folder of its own. Keys are the suite's names of memories: `memory.key`, which
    is also the first word of `memory.text` (see `keys_in`).
    """

    framework: ClassVar[str]  # the name in `mempursuit.<framework>` loggers
    adapter: ClassVar[Any]  # the adapter: a module with attach, install, uninstall
    cannot: ClassVar[Mapping[str, str]] = {}  # capability -> why not

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        unknown = set(cls.cannot) - CAPABILITIES
        if unknown or not all(cls.cannot.values()):
            raise TypeError(
                f"{cls.__name__}.cannot must map names out of {sorted(CAPABILITIES)} to a reason; "
                f"unknown: {sorted(unknown)}"
            )

    # -- What a subclass gives ---------------------------------------------------------------------

    @abstractmethod
    def build(self, memories: Sequence[Memory], encoder: CountingEncoder, home: Path) -> Any:
        """Return a framework object of its own that stores `memories` and embeds by `encoder`.

        Do not call `encoder` to fill the store if the vectors can be written as they are.
        """

    @abstractmethod
    def search(self, target: Any, query: str, k: int) -> Any:
        """Search as a user does, and return what a user gets."""

    @abstractmethod
    def read(self, result: Any) -> list[str]:
        """Return the keys of a result in its order, repeats included."""

    @abstractmethod
    def pool(self, target: Any, query: str, size: int) -> Pool:
        """Call the adapter's `pool` for at most `size` candidates."""

    @abstractmethod
    def inject(self, target: Any, fault: Fault, memory: Memory, patch: pytest.MonkeyPatch) -> None:
        """Make `target`'s store fail as `fault` says, for `memory` or as a whole.

        The framework's own search must go on giving its own order: spoil what is read, not what
        is ranked. `fault.spoil(vector)` gives or raises the right thing. WIDE_SEARCH_FAILS means
        that asking the store for more than `K` memories raises.
        """

    @abstractmethod
    def other_calls(self, target: Any) -> Mapping[str, Callable[[], object]]:
        """Return the framework's other calls, in the order to make them.

        Their results are compared, attached against not attached, so leave out what differs from
        store to store (fresh ids, clocks).
        """

    # -- What a subclass may override --------------------------------------------------------------

    def attach(self, target: Any, k: int, **options: Any) -> Handle:
        """Attach for searches of `k`; only some frameworks need to know `k` now."""
        return self.adapter.attach(target, **options)

    def install(self, k: int, **options: Any) -> Handle:
        """Install for searches of `k`."""
        return self.adapter.install(**options)

    def pool_keys(self, pool: Pool) -> list[str]:
        """Return the keys of a pool in its order."""
        return [str(text).split()[0] for text in pool.texts]

    def rows(self, result: Any) -> list[Any]:
        """Return the framework's own rows of a result, without what the adapter adds to them."""
        return list(result)

    def result_type(self, result: Any) -> object:
        """Return what must not change between the framework's own result and the adapter's."""
        return type(result)

    def close(self, target: Any) -> None:  # noqa: B027 - most targets need nothing
        """Release what `target` holds open."""

    async def asearch(self, target: Any, query: str, k: int) -> Any:
        """Search as an async user does; needed unless `cannot` says why there is none."""
        raise NotImplementedError

    # -- The machinery -----------------------------------------------------------------------------

    @pytest.fixture(autouse=True)
    def _set_up(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with self.ready(tmp_path, monkeypatch):
            yield

    @contextmanager
    def ready(self, home: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
        """Hold what the checks need, and leave nothing attached or open behind."""
        self._home, self._patch = home, patch
        self._targets: list[Any] = []
        self._handles: list[Handle] = []
        self.world = make_world()
        self.query = self.world.questions[0]
        try:
            yield
        finally:
            patch.undo()
            for handle in self._handles:
                handle.detach()
            if "install" not in self.cannot:
                self.adapter.uninstall()
            for target in self._targets:
                self.close(target)

    def _need(self, capability: str) -> None:
        if capability in self.cannot:
            pytest.skip(f"{self.framework}: {self.cannot[capability]}")

    def _filled(self, world: World | None = None, *, empty: bool = False) -> Any:
        """Return a new target; `self.encoder` is then its encoder."""
        world = world or self.world
        self.encoder = CountingEncoder(world)
        home = self._home / f"store{len(self._targets)}"
        home.mkdir()
        target = self.build(() if empty else world.memories, self.encoder, home)
        self._targets.append(target)
        return target

    def _attached(self, target: Any, k: int = K, **options: Any) -> Handle:
        handle = self.attach(target, k, **{"pool_size": POOL} | options)
        self._handles.append(handle)
        return handle

    def _keys(self, target: Any, query: str | None = None, k: int = K) -> list[str]:
        return self.read(self.search(target, query or self.query, k))

    def _native(self, target: Any, query: str | None = None, k: int = K) -> list[str]:
        """Return the framework's own top `k`; `target` must not be attached."""
        return self._keys(target, query, k)[:k]

    def _expected(
        self, target: Any, query: str | None = None, k: int = K, size: int = POOL, **dials: Any
    ) -> list[str]:
        """Return the picks of the core on the pool that the adapter exposes."""
        pool = self.pool(target, query or self.query, size)
        keys = self.pool_keys(pool)
        return [keys[i] for i in select(pool.query, np.stack(pool.vectors), k, **dials).indices]

    # -- The pool ----------------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [1, POOL])
    def test_pool_is_the_frameworks_top_with_its_own_vectors(self, size: int) -> None:
        target = self._filled()
        pool = self.pool(target, self.query, size)
        keys = self.pool_keys(pool)
        assert keys == self._native(target, k=size)
        assert len(keys) == len(pool.ids) == len(set(pool.ids)) == size
        stored = {memory.key: memory.vector for memory in self.world.memories}
        for key, vector in zip(keys, pool.vectors, strict=True):
            assert _cosine(vector, stored[key]) == pytest.approx(1, abs=1e-4)
        assert _cosine(pool.query, self.world.question_vectors[self.query]) == pytest.approx(
            1, abs=1e-4
        )

    # -- The picks ---------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", ["paper", "auto"])
    def test_picks_are_the_cores_in_entry_order(self, name: str) -> None:
        target = self._filled()
        dials = preset(name)
        expected, native = {}, {}
        for query in self.world.questions[:4]:
            native[query] = self._native(target, query)
            expected[query] = self._expected(
                target, query, discount=dials.discount, near_duplicate=dials.near_duplicate
            )
        assert any(set(expected[q]) != set(native[q]) for q in expected), "the data shows nothing"
        self._attached(target, preset=name)
        for query, keys in expected.items():
            assert self._keys(target, query) == keys

    def test_dials_are_passed_on(self) -> None:
        target = self._filled()
        expected = self._expected(target, discount=0.5, near_duplicate=0.9)
        assert expected != self._expected(target)
        self._attached(target, preset="paper", discount=0.5, near_duplicate=0.9)
        assert self._keys(target) == expected

    @pytest.mark.parametrize("k", [1, 3, POOL, POOL + 5, 100])
    def test_budgets_from_one_to_above_the_store(self, k: int) -> None:
        target = self._filled()
        if k > POOL:
            self._need("pool_below_budget")
        expected = self._expected(target, k=k, size=max(k, POOL))
        assert len(expected) == min(k, len(self.world.memories))
        self._attached(target, k)
        assert self._keys(target, k=k) == expected

    def test_a_pool_smaller_than_the_budget_loses_no_row(self) -> None:
        self._need("pool_below_budget")
        target = self._filled()
        expected = self._expected(target, size=K)
        self._attached(target, pool_size=2)
        assert self._keys(target) == expected
        assert sorted(expected) == sorted(self._native_of_twin())

    def test_the_pool_is_no_larger_than_asked(self) -> None:
        target = self._filled()
        expected = self._expected(target, size=8)
        assert expected != self._expected(target, size=POOL), "the data shows nothing"
        handle = self._attached(target, pool_size=8)
        assert self._keys(target) == expected
        assert handle.last is not None
        assert len(handle.last.pool_ids) == 8

    def test_an_empty_store(self) -> None:
        self._need("empty_store")
        target = self._filled(empty=True)
        native = self.search(target, self.query, K)
        self._attached(target)
        with warnings_of(self.framework) as heard:
            result = self.search(target, self.query, K)
        assert self.read(result) == self.read(native) == []
        assert self.result_type(result) == self.result_type(native)
        assert heard == []

    def test_the_result_keeps_its_form(self) -> None:
        target = self._filled()
        native = self.search(target, self.query, K)
        self._attached(target)
        assert self.result_type(self.search(target, self.query, K)) == self.result_type(native)

    def test_the_rows_are_the_frameworks_own(self) -> None:
        target = self._filled()
        own = self.search(target, self.query, len(self.world.memories))
        by_key = dict(zip(self.read(own), self.rows(own), strict=True))
        self._attached(target)
        found = self.search(target, self.query, K)
        for key, row in zip(self.read(found), self.rows(found), strict=True):
            assert row == by_key[key]

    # -- Costs and errors that are the framework's own ---------------------------------------------

    def test_no_embedding_call_is_added(self) -> None:
        target = self._filled()
        self._keys(target)  # whatever a first search alone embeds
        before = len(self.encoder.calls)
        self._keys(target)
        plain = self.encoder.calls[before:]
        assert plain, "the framework does not embed by the suite's encoder"
        before = len(self.encoder.calls)
        handle = self._attached(target)
        assert self.encoder.calls[before:] == []
        self._keys(target)
        assert self.encoder.calls[before:] == plain
        before = len(self.encoder.calls)
        handle.detach()
        assert self.encoder.calls[before:] == []

    def test_the_frameworks_own_errors_stay_its_own(self) -> None:
        target = self._filled()
        self._keys(target)

        def outcome() -> object:
            self.encoder.broken = True
            try:
                return self.read(self.search(target, self.query, K))[:K]
            except Exception as error:
                return type(error)
            finally:
                self.encoder.broken = False

        plain = outcome()
        self._attached(target)
        assert outcome() == plain
        assert self._keys(target) == self._expected_of_twin()

    # -- Attaching and detaching -------------------------------------------------------------------

    def test_detach_restores_everything(self) -> None:
        target = self._filled()
        native = self._native(target)
        before = Snapshot(target)
        handle = self._attached(target)
        assert before.changes(), "attach changes nothing that the suite can see"
        assert self._keys(target) != native
        handle.detach()
        assert before.changes() == []
        assert self._native(target) == native
        assert not handle.attached
        handle.detach()
        assert before.changes() == []

    def test_a_with_block_detaches_also_on_an_error(self) -> None:
        target = self._filled()
        native = self._native(target)
        before = Snapshot(target)
        with self._attached(target) as handle:
            assert handle.attached
            assert self._keys(target) != native
        assert before.changes() == []
        with pytest.raises(LookupError), self._attached(target):
            raise LookupError
        assert before.changes() == []
        assert self._native(target) == native

    def test_attaching_twice_is_refused(self) -> None:
        target = self._filled()
        self._keys(target)
        before = Snapshot(target)
        first = self._attached(target)
        expected = self._keys(target)
        with pytest.raises(RuntimeError, match=r"(?i)already.*detach|detach.*already"):
            self._attached(target, preset="auto")
        assert self._keys(target) == expected
        first.detach()
        assert before.changes() == []
        self._attached(target).detach()
        assert before.changes() == []

    @pytest.mark.parametrize(
        "options",
        [
            {"pool_size": 0},
            {"pool_size": 2.5},
            {"preset": "papper"},
            {"discount": 7},
            {"near_duplicate": 7},
            {"stop": 7},
        ],
        ids=str,
    )
    def test_a_wrong_argument_is_named_and_changes_nothing(self, options: dict[str, Any]) -> None:
        target = self._filled()
        before = Snapshot(target)
        with pytest.raises(ValueError, match=next(iter(options))):
            self._attached(target, **options)
        assert before.changes() == []

    def test_a_wrong_target_is_named(self) -> None:
        with pytest.raises(TypeError, match="object"):
            self.adapter.attach(object())

    def test_two_instances_are_independent(self) -> None:
        other_world = make_world(seed=1)
        target, other = self._filled(), self._filled(other_world)
        native = self._native(other, other_world.questions[0])
        expected = self._expected(target)
        plain_order = self._expected(other, other_world.questions[0], discount=0.5)
        assert plain_order != self._expected(other, other_world.questions[0])
        handle, other_handle = self._attached(target), self._attached(other, discount=0.5)
        assert self._keys(target) == expected
        assert self._keys(other, other_world.questions[0]) == plain_order
        assert handle.stats().searches == other_handle.stats().searches == 1
        other_handle.detach()
        assert self._native(other, other_world.questions[0]) == native
        assert self._keys(target) == expected

    def test_an_instance_that_is_not_attached_stays_as_it_is(self) -> None:
        target, other = self._filled(), self._filled()
        native = self._native(other)
        self._attached(target)
        assert self._native(other) == native

    # -- Installing --------------------------------------------------------------------------------

    def test_install_covers_instances_and_uninstall_restores(self) -> None:
        self._need("install")
        plain = self._filled()
        native, expected = self._native(plain), self._expected(plain)
        before = Snapshot(plain)
        handle = self.install(K, pool_size=POOL)
        later = self._filled()
        assert self._keys(later) == expected
        assert handle.stats().searches == 1
        with pytest.raises(RuntimeError, match=r"(?i)already.*uninstall|uninstall.*already"):
            self.install(K, pool_size=POOL)
        assert self._keys(later) == expected
        self.adapter.uninstall()
        assert before.changes() == []
        assert not handle.attached
        assert self._native(later) == self._native(plain) == native
        self.adapter.uninstall()
        self.install(K, pool_size=POOL).detach()  # detaching the handle uninstalls as well
        self.install(K, pool_size=POOL)
        self.adapter.uninstall()
        assert before.changes() == []

    def test_attaching_to_a_covered_instance_is_refused_or_wins(self) -> None:
        self._need("install")
        twin, wider = self._filled(), POOL + 10
        offered = self.pool_keys(self.pool(twin, self.query, POOL))
        by_class = self._expected(twin, size=wider)
        by_instance = self._expected(twin, discount=0.5)
        assert by_class != by_instance, "the data shows nothing"
        self.install(K, pool_size=wider)
        target = self._filled()
        before = Snapshot(target)
        refused = None
        try:
            self._attached(target, discount=0.5)
        except RuntimeError as error:
            refused = error
        if refused is None:
            assert self._keys(target) == by_instance
            last = self._handles[-1].last
            assert last is not None
            # It chose from the framework's pool, not from what the class had chosen.
            assert [text.split()[0] for text in last.texts] == offered
            self._handles.pop().detach()
        else:
            assert "install" in str(refused), "the refusal must say what to do"
        assert before.changes() == []
        assert self._keys(target) == by_class

    # -- Concurrency -------------------------------------------------------------------------------

    def test_threads_get_what_each_would_get_alone(self) -> None:
        self._need("threads")
        target = self._filled()
        handle = self._attached(target)
        questions = self.world.questions
        alone = {query: self._keys(target, query) for query in questions}
        assert len(set(map(tuple, alone.values()))) > len(questions) // 2
        together = threading.Barrier(THREADS)

        def search(start: int) -> list[tuple[str, list[str], list[str]]]:
            together.wait(timeout=60)
            rows = []
            for query in (*questions[start:], *questions[:start])[:6]:
                found = self._keys(target, query)
                assert handle.last is not None
                rows.append((query, found, self._choice_keys(target, handle.last)))
            return rows

        with ThreadPoolExecutor(THREADS) as pool:
            for rows in pool.map(search, range(THREADS)):
                for query, found, remembered in rows:
                    assert found == alone[query]
                    assert remembered == alone[query]
        assert handle.stats().fallbacks == {}
        assert handle.stats().searches == len(questions) + 6 * THREADS

    def test_tasks_get_what_each_would_get_alone(self) -> None:
        self._need("async")
        target = self._filled()
        questions = [self.world.questions[i % len(self.world.questions)] for i in range(TASKS)]
        expected = {query: self._expected(target, query) for query in questions}
        handle = self._attached(target)

        async def one(query: str) -> tuple[list[str], list[str]]:
            found = self.read(await self.asearch(target, query, K))
            await asyncio.sleep(0)
            assert handle.last is not None
            return found, self._choice_keys(target, handle.last)

        async def all_at_once() -> list[tuple[list[str], list[str]]]:
            return await asyncio.gather(*(one(query) for query in questions))

        for query, (found, remembered) in zip(questions, asyncio.run(all_at_once()), strict=True):
            assert found == expected[query]
            assert remembered == expected[query]
        assert handle.stats().fallbacks == {}

    # -- Faults ------------------------------------------------------------------------------------

    @pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.value)
    def test_a_fault_falls_back_with_one_warning(self, fault: Fault) -> None:
        self._need(fault.value)
        target = self._filled()
        native = self._native(target)
        victim = next(m for m in self.world.memories if m.key == native[1])
        expected = native
        if fault.hits_one_memory:
            # The memory that cannot be judged keeps its native place; the others are chosen.
            expected = self._without(target, victim)
            assert expected[1] == native[1]
            assert expected != native
        calls = len(self.encoder.calls)
        self._keys(target)
        embedded = self.encoder.calls[calls:]
        self.inject(target, fault, victim, self._patch)
        assert self._native(target) == native, "the fault must leave the framework's search alone"
        handle = self._attached(target)
        calls = len(self.encoder.calls)
        with warnings_of(self.framework) as heard:
            for _ in range(3):
                assert self._keys(target) == expected
        assert self.encoder.calls[calls:] == embedded * 3
        assert len(heard) == 1, heard
        assert list(handle.stats().fallbacks.values()) == [3]
        assert self.framework in heard[0]

    # -- The framework's other calls ---------------------------------------------------------------

    def test_other_calls_are_untouched(self) -> None:
        self._need("other_calls")
        plain = self._filled()
        plain_encoder = self.encoder
        target = self._filled()
        handle = self._attached(target)
        calls, plain_calls = self.other_calls(target), self.other_calls(plain)
        assert list(calls), "give other_calls, or say in `cannot` why there are none"
        assert list(calls) == list(plain_calls)
        for name in calls:
            marks = len(self.encoder.calls), len(plain_encoder.calls)
            assert calls[name]() == plain_calls[name](), f"{name} gives another result"
            assert self.encoder.calls[marks[0] :] == plain_encoder.calls[marks[1] :], (
                f"{name} embeds other texts"
            )
        assert handle.stats().searches == 0

    # -- What the handle tells ---------------------------------------------------------------------

    def test_the_handle_tells_what_it_did(self) -> None:
        target = self._filled()
        native = self._native(target)
        pool = self.pool(target, self.query, POOL)
        handle = self._attached(target)
        assert handle.last is None
        assert handle.stats().searches == 0
        for query in (self.world.questions[1], self.world.questions[2], self.query):
            found = self._keys(target, query)
        stats, last = handle.stats(), handle.last
        assert stats.searches == 3
        assert stats.fallbacks == {}
        assert stats.pool_size_max == stats.pool_size_median == POOL
        assert 0 < stats.added_ms_median <= stats.added_ms_p95
        assert last is not None
        assert last.pool_ids == tuple(pool.ids)
        assert self._choice_keys(target, last) == found
        assert last.trouble == {}
        assert all(score is not None for score in last.scores)
        keys = dict(zip(pool.ids, self.pool_keys(pool), strict=True))
        assert {keys[i] for i in last.came_in} == set(found) - set(native)
        assert {keys[i] for i in last.went_out} == set(native) - set(found)
        assert last.came_in, "the data shows nothing"
        explained = handle.explain()
        assert all(str(i) in explained for i in (*last.ids, *last.went_out))

    # -- Helpers of the checks ---------------------------------------------------------------------

    def _choice_keys(self, target: Any, choice: Choice) -> list[str]:
        """Return the keys a choice chose, by the text it kept of each memory."""
        if choice.texts:
            return [choice.texts[i].split()[0] for i in choice.positions]
        pytest.fail("the adapter's Pool must carry texts, so that explain() can show them")

    def _expected_of_twin(self) -> list[str]:
        encoder = self.encoder
        try:
            return self._expected(self._filled())
        finally:
            self.encoder = encoder

    def _native_of_twin(self) -> list[str]:
        encoder = self.encoder
        try:
            return self._native(self._filled())
        finally:
            self.encoder = encoder

    def _without(self, target: Any, victim: Memory) -> list[str]:
        """Return what is chosen when `victim` has no vector."""
        pool = self.pool(target, self.query, POOL)
        keys = self.pool_keys(pool)
        vectors = [
            None if key == victim.key else vector
            for key, vector in zip(keys, pool.vectors, strict=True)
        ]
        choice = choose(Pool(pool.ids, vectors, pool.query), K, Dials())
        return [keys[i] for i in choice.positions]


def _cosine(a: Any, b: Any) -> float:
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
