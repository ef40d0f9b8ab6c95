"""What a Mem0 user sees: `attach`, `install`, the config block, several stores."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import mem0.memory.main
import pytest
from mem0 import AsyncMemory, Memory
from mem0.utils.factory import RerankerFactory

from integration_tests.mem0_kit import (
    DIMENSION,
    QUESTION,
    USER,
    Embedder,
    config,
    cosine,
    facts,
    make,
    native_order,
    pursued,
    search,
    texts_of,
    write,
)
from mempursuit_adapters import mem0 as adapter
from mempursuit_core import AdaptiveStop

FACTS = facts()
BLOCK = {"provider": "mempursuit", "config": {"pool_size": 60, "preset": "auto"}}
KINDS = pytest.mark.parametrize("kind", [Memory, AsyncMemory])


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    return make(tmp_path, FACTS)


@pytest.fixture(autouse=True)
def _nothing_stays_installed() -> Any:
    yield
    adapter.uninstall()


@KINDS
def test_the_results_are_picked_from_the_pool_and_not_from_the_top_k(
    kind: type[Any], tmp_path: Path
) -> None:
    memory = make(tmp_path, FACTS, kind)
    with adapter.attach(memory, pool_size=60):
        rows = search(memory, top_k=10)
    assert texts_of(rows) == pursued(FACTS, 10, 60)
    assert not set(texts_of(rows)) <= set(native_order(FACTS, memory.embedding_model.question)[:10])
    assert all(isinstance(row["rerank_score"], float) for row in rows)


@pytest.mark.parametrize("k", [1, 5, 20, 60, 80])
def test_every_budget_below_and_above_the_pool(k: int, memory: Any) -> None:
    with adapter.attach(memory, pool_size=60):
        assert texts_of(search(memory, top_k=k)) == pursued(FACTS, k, max(60, k))


def test_a_pool_smaller_than_the_budget_comes_back_whole(tmp_path: Path) -> None:
    few = facts(7)
    memory = make(tmp_path, few)
    with adapter.attach(memory):
        assert texts_of(search(memory, top_k=20)) == pursued(few, 7)


def test_presets_and_dials_reach_the_pursuit(memory: Any) -> None:
    with adapter.attach(memory, preset="auto"):
        auto = texts_of(search(memory, top_k=20))
    with adapter.attach(memory, discount=0.5, near_duplicate=0.9):
        dials = texts_of(search(memory, top_k=20))
    with adapter.attach(memory, stop=AdaptiveStop(tolerance=0.5, patience=1)):
        stopped = texts_of(search(memory, top_k=20))
    assert auto == pursued(FACTS, 20, discount="auto", near_duplicate=0.95)
    assert dials == pursued(FACTS, 20, discount=0.5, near_duplicate=0.9)
    assert stopped == pursued(FACTS, 20, stop=AdaptiveStop(tolerance=0.5, patience=1))
    assert len(stopped) < 20


@KINDS
def test_the_embedder_is_asked_once_with_and_without(kind: type[Any], tmp_path: Path) -> None:
    memory = make(tmp_path, FACTS, kind)
    with adapter.attach(memory):
        search(memory)
    assert memory.embedding_model.asked == [QUESTION]
    assert memory.embedding_model.batches == []


@KINDS
def test_without_rerank_nothing_changes(kind: type[Any], tmp_path: Path) -> None:
    memory = make(tmp_path, FACTS, kind)
    before = search(memory, rerank=False, explain=True)
    with adapter.attach(memory) as handle:
        assert search(memory, rerank=False, explain=True) == before
    assert handle.stats().searches == 0


@KINDS
def test_detaching_restores_the_memory_exactly(kind: type[Any], tmp_path: Path) -> None:
    memory = make(tmp_path, FACTS, kind)
    before = dict(vars(memory)), dict(vars(memory.embedding_model)), search(memory)
    handle = adapter.attach(memory)
    assert inspect.iscoroutinefunction(memory.search) is (kind is AsyncMemory)
    search(memory)
    handle.detach()
    handle.detach()
    assert (dict(vars(memory)), dict(vars(memory.embedding_model))) == before[:2]
    assert search(memory) == before[2]


def test_a_configured_reranker_is_set_aside_until_detach(memory: Any) -> None:
    class Reversed:
        def rerank(self, query: str, documents: list[Any], top_k: int) -> list[Any]:
            return documents[:top_k][::-1]

    memory.reranker = theirs = Reversed()
    with adapter.attach(memory):
        assert texts_of(search(memory, top_k=5)) == pursued(FACTS, 5)
    assert memory.reranker is theirs


def test_mem0s_own_telemetry_sees_the_users_search(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[dict[str, Any]] = []
    monkeypatch.setattr(
        mem0.memory.main, "capture_event", lambda name, of, data: events.append(data)
    )
    search(memory, top_k=10)
    with adapter.attach(memory):
        search(memory, top_k=10)
    assert events[0] == events[1]


def test_attaching_twice_is_refused(memory: Any) -> None:
    with adapter.attach(memory):
        with pytest.raises(RuntimeError, match="already reads through MemPursuit"):
            adapter.attach(memory)
        assert texts_of(search(memory, top_k=5)) == pursued(FACTS, 5)
    with adapter.attach(memory):
        pass


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pool_size": 0}, "pool_size must be"),
        ({"preset": "best"}, "preset must be one of"),
        ({"discount": 2.0}, "discount"),
        ({"near_duplicate": 5.0}, "near_duplicate"),
        ({"stop": True}, "stop must be an AdaptiveStop"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_attached(
    wrong: dict[str, Any], message: str, memory: Any
) -> None:
    for refuse in (lambda: adapter.attach(memory, **wrong), lambda: adapter.install(**wrong)):
        with pytest.raises(ValueError, match=message):
            refuse()
    assert "search" not in vars(memory)


def test_only_a_memory_can_be_attached() -> None:
    with pytest.raises(TypeError, match=r"mem0\.Memory"):
        adapter.attach(object())


@KINDS
def test_the_config_block(kind: type[Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unsupported reranker provider"):
        kind.from_config(config(tmp_path / "before", reranker=BLOCK))
    handle = adapter.install()
    memory = kind.from_config(config(tmp_path / "after", reranker=BLOCK))
    memory.embedding_model = Embedder(FACTS)
    write(memory, FACTS)
    rows = search(memory, top_k=10)
    assert texts_of(rows) == pursued(FACTS, 10, 60, discount="auto", near_duplicate=0.95)
    assert handle.stats().searches == 1
    assert handle.last is not None
    assert len(handle.last.pool_ids) == 60
    adapter.uninstall()
    assert texts_of(search(memory, top_k=10)) == texts_of(search(memory, top_k=10, rerank=False))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pool": 60}, "pool"),
        ({"preset": "best"}, "preset must be one of"),
        ({"pool_size": 0}, "pool_size must be"),
        ({"near_duplicate": 7}, "near_duplicate"),
        ({"model": "rerank-v3.5"}, "runs no model"),
    ],
)
def test_a_wrong_key_in_the_config_block_is_named(
    wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    adapter.install()
    block = {"provider": "mempursuit", "config": wrong}
    with pytest.raises(ValueError, match=message):
        Memory.from_config(config(tmp_path, reranker=block))


def test_install_covers_memories_without_a_reranker_and_leaves_the_others(tmp_path: Path) -> None:
    methods = {
        (k, n): vars(k)[n]
        for k in (Memory, AsyncMemory)
        for n in ("__init__", "search", "_search_vector_store")
    }
    providers = RerankerFactory.provider_to_class
    made_before = make(tmp_path / "a", FACTS)
    adapter.install(pool_size=60)
    with pytest.raises(RuntimeError, match="already installed"):
        adapter.install()
    made_after = make(tmp_path / "b", FACTS)
    assert texts_of(search(made_after, top_k=10)) == pursued(FACTS, 10, 60)
    native = native_order(FACTS, made_before.embedding_model.question)
    assert texts_of(search(made_before, top_k=10)) == native[:10]
    adapter.uninstall()
    adapter.uninstall()
    assert texts_of(search(made_after, top_k=10)) == native[:10]
    assert "rerank_score" not in search(made_after)[0]
    assert {(k, n): vars(k)[n] for k, n in methods} == methods
    assert RerankerFactory.provider_to_class is providers


@KINDS
def test_while_installed_attach_gives_one_memory_dials_of_its_own(
    kind: type[Any], tmp_path: Path
) -> None:
    made_before = make(tmp_path / "a", FACTS, kind)
    adapter.install(pool_size=60)
    made_after = make(tmp_path / "b", FACTS, kind)
    auto = pursued(FACTS, 10, 60, discount="auto", near_duplicate=0.95)
    native = native_order(FACTS, made_before.embedding_model.question)[:10]
    for memory, without in ((made_before, native), (made_after, pursued(FACTS, 10, 60))):
        assert texts_of(search(memory, top_k=10)) == without
        with adapter.attach(memory, pool_size=60, preset="auto") as handle:
            assert texts_of(search(memory, top_k=10)) == auto
            with pytest.raises(RuntimeError, match="attached already"):
                adapter.attach(memory)
        assert handle.stats().searches == 1
        assert texts_of(search(memory, top_k=10)) == without


def test_pool_is_what_an_attached_memory_picks_from(memory: Any) -> None:
    with adapter.attach(memory, pool_size=60) as handle:
        search(memory, top_k=10)
    pool = adapter.pool(memory, QUESTION, filters=USER, pool_size=60)
    assert handle.last is not None
    assert tuple(pool.ids) == handle.last.pool_ids
    assert list(pool.texts) == native_order(FACTS, memory.embedding_model.question)[:60]
    assert "embed" not in vars(memory.embedding_model)


BOB = facts(50, seed=2)


@pytest.fixture
def mirrored(tmp_path: Path) -> Any:
    memory = make(tmp_path, FACTS)
    memory.embedding_model.vectors.update({f"bob's {t}": v for t, v in BOB.items()})
    write(memory, {f"bob's {t}": v for t, v in BOB.items()}, user="bob")
    return memory


STORES = [{"user_id": "ann"}, {"user_id": "bob"}]


def merged(per_store: int) -> dict[str, list[float]]:
    question = [1.0] * DIMENSION
    bob = {f"bob's {t}": v for t, v in BOB.items()}
    return {
        text: store[text]
        for store in (FACTS, bob)
        for text in native_order(store, question)[:per_store]
    }


def test_several_stores_are_merged_by_cosine_and_read_by_one_pursuit(mirrored: Any) -> None:
    pool = adapter.pool_across(mirrored, QUESTION, filters=STORES)
    found = adapter.search_across(mirrored, QUESTION, filters=STORES, top_k=10)
    assert list(pool.texts) == native_order(merged(30), mirrored.embedding_model.question)
    assert texts_of(found["results"]) == pursued(merged(30), 10)
    assert {row["user_id"] for row in found["results"]} == {"ann", "bob"}
    assert mirrored.embedding_model.asked == [QUESTION] * 2  # one for each of the two calls


def test_search_across_takes_the_dials_of_an_attached_memory_unless_others_are_given(
    mirrored: Any,
) -> None:
    def across(**dials: Any) -> list[str]:
        found = adapter.search_across(
            mirrored, QUESTION, filters=STORES, top_k=12, per_store=20, **dials
        )
        return texts_of(found["results"])

    with adapter.attach(mirrored, discount=0.3) as handle:
        assert across() == pursued(merged(20), 12, discount=0.3)
        assert across(preset="auto") == pursued(
            merged(20), 12, discount="auto", near_duplicate=0.95
        )
    assert handle.stats().searches == 2


def test_overlapping_filters_find_a_memory_once(memory: Any) -> None:
    found = adapter.search_across(memory, QUESTION, filters=[USER, USER], top_k=60)
    ids = [row["id"] for row in found["results"]]
    assert len(ids) == len(set(ids)) == 30


def test_search_across_names_what_is_wrong(memory: Any) -> None:
    with pytest.raises(ValueError, match="filters must be a list"):
        adapter.search_across(memory, QUESTION, filters=USER)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="filters must be a list"):
        adapter.search_across(memory, QUESTION, filters="ann")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="top_k must be"):
        adapter.search_across(memory, QUESTION, filters=STORES, top_k=0)
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="per_store must be"):
            adapter.search_across(memory, QUESTION, filters=STORES, per_store=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pool_size must be"):
        adapter.pool(memory, QUESTION, filters=USER, pool_size=0)
    with pytest.raises(ValueError, match="filters must contain"):
        adapter.search_across(memory, QUESTION, filters=[{"city": "Rome"}])


def test_an_async_memory_is_sent_to_the_async_verb(tmp_path: Path) -> None:
    memory = make(tmp_path, FACTS, AsyncMemory)
    with pytest.raises(TypeError, match="search_across_async"):
        adapter.search_across(memory, QUESTION, filters=STORES)


def test_search_across_keeps_the_stores_order_when_no_vector_can_be_read(
    mirrored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrored.vector_store, "client", Broken(mirrored.vector_store.client))
    found = adapter.search_across(mirrored, QUESTION, filters=STORES, top_k=10)
    expected = native_order(merged(30), mirrored.embedding_model.question)[:10]
    assert texts_of(found["results"]) == expected


class Broken:
    """A client that searches but hands no vectors out."""

    def __init__(self, client: Any) -> None:
        self._searching = client

    def query_points(self, **arguments: Any) -> Any:
        return self._searching.query_points(**arguments)

    def retrieve(self, **arguments: Any) -> Any:
        raise ConnectionError("the store is busy")


def test_rows_are_mem0s_own(memory: Any) -> None:
    plain = {row["id"]: row for row in search(memory, rerank=False, top_k=120)}
    with adapter.attach(memory):
        rows = search(memory, top_k=10)
    for row in rows:
        same = {"score": pytest.approx(row["score"]), "rerank_score": row["rerank_score"]}
        assert row == {**plain[row["id"]], **same}
        assert row["score"] == pytest.approx(
            cosine(FACTS[row["memory"]], memory.embedding_model.question), abs=1e-5
        )
