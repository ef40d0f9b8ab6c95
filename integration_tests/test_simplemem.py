"""The SimpleMem adapter on real SimpleMem: LanceDB, planning, reflection, threads, `ask`.

Runs on whichever version is installed; test_simplemem_source.py runs it once more on a checkout.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integration_tests.simplemem_kit import (
    LAYOUT,
    FakeEmbeddingModel,
    FakeLLM,
    HybridRetriever,
    MemoryEntry,
    ids,
    loopback_llm,
    make_entries,
    make_retriever,
    make_store,
    make_system,
)
from mempursuit_adapters.simplemem import attach, install, pool, uninstall
from mempursuit_core import AdaptiveStop, select

K = 5
QUESTION = "What's the question?"


@pytest.fixture
def model() -> FakeEmbeddingModel:
    return FakeEmbeddingModel()


@pytest.fixture
def store(tmp_path: Path, model: FakeEmbeddingModel) -> Any:
    return make_store(tmp_path, model, make_entries(60))


@pytest.fixture
def retriever(store: Any) -> Any:
    return make_retriever(store, semantic_top_k=25)


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with loopback_llm() as server:
        yield server


def pursued(
    model: FakeEmbeddingModel, question: str, entries: Sequence[Any], k: int = K, **dials: Any
) -> list[str]:
    """Return the ids the core picks from `entries`, by vectors made here, not read anywhere."""
    vectors = np.stack([model.vector(e.lossless_restatement) for e in entries])
    picks = select(model.vector(question), vectors, k, **dials).indices
    return [entries[i].entry_id for i in picks]


class TestWithoutPlanning:
    def test_retrieve_returns_what_the_core_picks_from_everything_found(
        self, retriever: Any, model: FakeEmbeddingModel
    ) -> None:
        native = retriever.retrieve(QUESTION)
        assert len(native) == 25

        with attach(retriever, k=K):
            chosen = retriever.retrieve(QUESTION)

        assert ids(chosen) == pursued(model, QUESTION, native)
        assert ids(chosen) != ids(native)[:K]
        assert [e.lossless_restatement for e in chosen] == [f"Fact {i}." for i in ids(chosen)]

    def test_the_dials_are_the_cores(self, retriever: Any, model: FakeEmbeddingModel) -> None:
        native = retriever.retrieve(QUESTION)
        expected = {
            "preset auto": ({"preset": "auto"}, {"discount": "auto", "near_duplicate": 0.95}),
            "discount": ({"discount": 0.3}, {"discount": 0.3}),
            "duplicates": ({"near_duplicate": 0.2}, {"near_duplicate": 0.2}),
            "stop": ({"stop": AdaptiveStop(0.05, 1)}, {"stop": AdaptiveStop(0.05, 1)}),
        }
        for given, dials in expected.values():
            with attach(retriever, k=10, **given):
                assert ids(retriever.retrieve(QUESTION)) == pursued(
                    model, QUESTION, native, 10, **dials
                )

    def test_the_pool_function_shows_what_is_chosen_from(
        self, retriever: Any, model: FakeEmbeddingModel
    ) -> None:
        native = retriever.retrieve(QUESTION)
        with attach(retriever, k=K):
            shown = pool(retriever, QUESTION)

        assert list(shown.ids) == ids(native)
        assert ids(shown.items) == ids(native)
        np.testing.assert_array_equal(shown.query, model.vector(QUESTION))
        for vector, entry in zip(shown.vectors, native, strict=True):
            np.testing.assert_array_equal(vector, model.vector(entry.lossless_restatement))

    def test_pool_size_caps_what_pursuit_may_look_at(
        self, retriever: Any, model: FakeEmbeddingModel
    ) -> None:
        native = retriever.retrieve(QUESTION)
        with attach(retriever, k=K, pool_size=12) as handle:
            chosen = retriever.retrieve(QUESTION)

        assert ids(chosen) == pursued(model, QUESTION, native[:12])
        assert handle.stats().pool_size_max == 12

    def test_fewer_found_than_k_all_come_back(self, store: Any) -> None:
        retriever = make_retriever(store, semantic_top_k=3)
        native = retriever.retrieve(QUESTION)
        with attach(retriever, k=K):
            assert sorted(ids(retriever.retrieve(QUESTION))) == sorted(ids(native))

    def test_an_empty_store_finds_nothing_and_that_is_no_trouble(
        self, tmp_path: Path, model: FakeEmbeddingModel
    ) -> None:
        retriever = make_retriever(make_store(tmp_path, model, []))
        with attach(retriever, k=K) as handle:
            assert retriever.retrieve(QUESTION) == []
        assert handle.stats().fallbacks == {}

    def test_ids_with_quotes_are_safe(self, tmp_path: Path, model: FakeEmbeddingModel) -> None:
        names = ["o'brien", "''", "x') OR ('1'='1", 'a "b"', "c\\", "; --", "é'∂", "plain"]
        entries = [MemoryEntry(entry_id=n, lossless_restatement=f"About {n}.") for n in names]
        retriever = make_retriever(make_store(tmp_path, model, entries))
        native = retriever.retrieve(QUESTION)
        with attach(retriever, k=K) as handle:
            chosen = retriever.retrieve(QUESTION)

        assert ids(chosen) == pursued(model, QUESTION, native)
        assert handle.stats().fallbacks == {}

    def test_an_entry_stored_twice_takes_one_place(
        self, tmp_path: Path, model: FakeEmbeddingModel
    ) -> None:
        entries = make_entries(12)
        retriever = make_retriever(make_store(tmp_path, model, entries + entries[:6]))
        assert len(retriever.retrieve(QUESTION)) == 18
        with attach(retriever, k=12):
            assert sorted(ids(retriever.retrieve(QUESTION))) == sorted(ids(entries))

    def test_the_question_may_be_given_by_name(self, retriever: Any) -> None:
        with attach(retriever, k=K):
            by_name = retriever.retrieve(query=QUESTION, enable_reflection=False)
            assert ids(by_name) == ids(retriever.retrieve(QUESTION))

    def test_entries_added_while_attached_are_found(
        self, retriever: Any, model: FakeEmbeddingModel
    ) -> None:
        with attach(retriever, k=K):
            text = QUESTION  # the very vector of the question: always the first pick
            retriever.vector_store.add_entries(
                [MemoryEntry(entry_id="new", lossless_restatement=text)]
            )
            assert ids(retriever.retrieve(QUESTION))[0] == "new"
            assert len(retriever.vector_store.get_all_entries()) == 61


@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "sequential"])
class TestWithPlanningAndReflection:
    WIDTH = 8

    @pytest.fixture
    def planned(self, store: Any, llm: FakeLLM, parallel: bool) -> Any:
        return make_retriever(
            store,
            llm.client(),
            semantic_top_k=self.WIDTH,
            enable_reflection=True,
            enable_parallel_retrieval=parallel,
        )

    def union(self, store: Any, llm: FakeLLM) -> set[str]:
        """Return what SimpleMem's searches find, each asked on its own."""
        texts = [QUESTION, *llm.answer["queries"], *llm.answer["targeted_queries"]]
        found = {i for t in texts for i in ids(store.semantic_search(t, top_k=self.WIDTH))}
        if LAYOUT == "0.3.0":  # 0.1.0 has these two, but its planner does not call them
            found |= set(ids(store.keyword_search(llm.answer["keywords"], top_k=5)))
            found |= set(ids(store.structured_search(persons=llm.answer["persons"], top_k=5)))
        return found

    def test_the_pool_is_the_whole_union(
        self, planned: Any, store: Any, llm: FakeLLM, model: FakeEmbeddingModel
    ) -> None:
        native = planned.retrieve(QUESTION)
        assert set(ids(native)) == self.union(store, llm)
        assert len(native) > 2 * self.WIDTH

        with attach(planned, k=K) as handle:
            chosen = planned.retrieve(QUESTION)

        assert ids(chosen) == pursued(model, QUESTION, native)
        assert handle.stats().pool_size_max == len(native)
        assert handle.stats().fallbacks == {}

    def test_planning_and_reflection_run_as_they_are(
        self, planned: Any, llm: FakeLLM, model: FakeEmbeddingModel
    ) -> None:
        def asked() -> tuple[list[list[str]], list[str]]:
            llm.prompts.clear()
            model.embedded.clear()
            planned.retrieve(QUESTION)
            # Parallel searches finish in any order, and with them the lines of the prompts.
            return [sorted(p.splitlines()) for p in llm.prompts], sorted(model.embedded)

        def content(prompts: list[list[str]]) -> list[set[str]]:
            """Forget the numbers SimpleMem gives to what it found."""
            return [{line.partition("] ")[2] or line for line in prompt} for prompt in prompts]

        without = asked()
        with attach(planned, k=K):
            with_ = asked()

        assert content(with_[0]) == content(without[0])
        assert with_[1] == without[1]
        assert with_[1].count(QUESTION) == 1

    def test_reflection_can_be_switched_off_for_one_call(
        self, planned: Any, store: Any, llm: FakeLLM
    ) -> None:
        with attach(planned, k=K) as handle:
            planned.retrieve(QUESTION, enable_reflection=False)
        short = handle.stats().pool_size_max
        with attach(planned, k=K) as handle:
            planned.retrieve(QUESTION)

        assert short < handle.stats().pool_size_max

    def test_a_question_the_plan_never_searches_keeps_native_order(
        self, planned: Any, llm: FakeLLM, caplog: pytest.LogCaptureFixture
    ) -> None:
        """SimpleMem keeps four queries; a plan that lists the question fifth drops it."""
        llm.answer["queries"] = ["one", "two", "three", "four", QUESTION]
        planned.enable_parallel_retrieval = False  # native order itself must be repeatable
        native = planned.retrieve(QUESTION)
        with attach(planned, k=K) as handle:
            for _ in range(2):
                assert ids(planned.retrieve(QUESTION)) == ids(native)[:K]

        assert handle.stats().fallbacks == {"no_query_vector": 2}
        assert len(_ours(caplog)) == 1

    def test_sixteen_threads_never_mix_their_questions(
        self, planned: Any, llm: FakeLLM, model: FakeEmbeddingModel
    ) -> None:
        questions = [f"Question number {i}?" for i in range(16)]
        expected = [pursued(model, q, planned.retrieve(q)) for q in questions]
        with attach(planned, k=K) as handle, ThreadPoolExecutor(16) as threads:
            chosen = list(threads.map(planned.retrieve, questions))

        assert [ids(c) for c in chosen] == expected
        assert handle.stats().searches == 16
        assert handle.stats().fallbacks == {}

    def test_an_error_of_simplemem_is_still_its_own(self, planned: Any, llm: FakeLLM) -> None:
        del llm.answer["required_info"]  # SimpleMem does not expect an LLM to leave this out
        with attach(planned, k=K), pytest.raises(KeyError, match="required_info"):
            planned.retrieve(QUESTION)


class TestAsk:
    @pytest.fixture
    def system(
        self, tmp_path: Path, model: FakeEmbeddingModel, llm: FakeLLM, monkeypatch: Any
    ) -> Any:
        system = make_system(tmp_path, model, llm, monkeypatch)
        system.vector_store.add_entries(make_entries(40))
        system.hybrid_retriever.semantic_top_k = 10
        return system

    def shown(self, prompt: str, model: FakeEmbeddingModel) -> list[str]:
        """Return the ids of the facts in a prompt, in the order they appear."""
        places = {f"e{i}": prompt.find(f"Fact e{i}.") for i in range(40)}
        return sorted((i for i, p in places.items() if p >= 0), key=places.__getitem__)

    def test_the_answer_is_made_from_the_picked_entries_in_entry_order(
        self, system: Any, llm: FakeLLM, model: FakeEmbeddingModel
    ) -> None:
        native = system.hybrid_retriever.retrieve(QUESTION)
        assert system.ask(QUESTION) == "forty-two"
        assert len(self.shown(llm.prompts[-1], model)) == len(native)

        with attach(system, k=K):
            assert system.ask(QUESTION) == "forty-two"

        assert self.shown(llm.prompts[-1], model) == pursued(model, QUESTION, native)

    def test_install_covers_a_system_made_later(
        self, tmp_path: Path, model: FakeEmbeddingModel, llm: FakeLLM, monkeypatch: Any
    ) -> None:
        install(k=3)
        try:
            system = make_system(tmp_path, model, llm, monkeypatch)
            system.vector_store.add_entries(make_entries(40))
            system.ask(QUESTION)
        finally:
            uninstall()

        assert len(self.shown(llm.prompts[-1], model)) == 3

    @pytest.mark.skipif(LAYOUT != "0.3.0", reason="SimpleMem() came with 0.3.0")
    def test_the_auto_mode_object_of_0_3_0(
        self, tmp_path: Path, model: FakeEmbeddingModel, llm: FakeLLM, monkeypatch: Any
    ) -> None:
        from simplemem import SimpleMem

        make_system(tmp_path, model, llm, monkeypatch)  # for its patched encoder
        memory = SimpleMem(
            api_key="none",
            model="fake",
            base_url=llm.url,
            db_path=str(tmp_path),
            use_streaming=False,
        )
        with pytest.raises(TypeError, match="mode"):
            attach(memory)
        assert memory.get_all_memories() == []
        memory._backend.vector_store.add_entries(make_entries(40))

        with attach(memory, k=4):
            memory.ask(QUESTION)

        assert len(self.shown(llm.prompts[-1], model)) == 4


class TestAttaching:
    def test_detach_restores_the_very_same_method(self, retriever: Any) -> None:
        before, state = retriever.retrieve, dict(vars(retriever))
        handle = attach(retriever, k=K)
        assert retriever.retrieve != before
        handle.detach()

        assert retriever.retrieve == before
        assert vars(retriever) == state
        assert len(retriever.retrieve(QUESTION)) == 25

    def test_attaching_twice_is_refused(self, retriever: Any) -> None:
        with attach(retriever, k=K):
            with pytest.raises(RuntimeError, match="detach"):
                attach(retriever, k=K)
            assert len(retriever.retrieve(QUESTION)) == K
        assert len(retriever.retrieve(QUESTION)) == 25

    def test_two_retrievers_over_one_store_are_independent(
        self, store: Any, model: FakeEmbeddingModel
    ) -> None:
        first, second = (make_retriever(store, semantic_top_k=25) for _ in range(2))
        native = first.retrieve(QUESTION)
        with attach(first, k=3) as one, attach(second, k=7, preset="auto") as two:
            assert ids(first.retrieve(QUESTION)) == pursued(model, QUESTION, native, 3)
            assert ids(second.retrieve(QUESTION)) == pursued(
                model, QUESTION, native, 7, discount="auto", near_duplicate=0.95
            )
            one.detach()
            assert len(first.retrieve(QUESTION)) == 25
            assert len(second.retrieve(QUESTION)) == 7
        assert (one.stats().searches, two.stats().searches) == (1, 2)

    def test_install_covers_every_retriever_and_uninstall_restores_the_class(
        self, store: Any, retriever: Any
    ) -> None:
        before = vars(HybridRetriever)["retrieve"]
        handle = install(k=K)
        try:
            later = make_retriever(store, semantic_top_k=25)
            assert len(retriever.retrieve(QUESTION)) == K
            assert ids(later.retrieve(QUESTION)) == ids(retriever.retrieve(QUESTION))
            assert len(pool(retriever, QUESTION)) == 25
            assert handle.stats().searches == 3
            with pytest.raises(RuntimeError, match="uninstall"):
                install(k=K)
            with pytest.raises(RuntimeError, match="uninstall"):
                attach(retriever, k=K)
        finally:
            uninstall()
        assert vars(HybridRetriever)["retrieve"] is before
        assert len(retriever.retrieve(QUESTION)) == 25
        uninstall()

    def test_a_users_subclass_keeps_its_own_behaviour_and_state(
        self, store: Any, model: FakeEmbeddingModel
    ) -> None:
        class Counting(HybridRetriever):  # type: ignore[misc]
            seen = 0

            def retrieve(self, query: str, enable_reflection: bool | None = None) -> list[Any]:
                self.seen += 1
                return list(super().retrieve(query, enable_reflection)[:15])

        retriever = Counting(None, store, semantic_top_k=25, enable_planning=False)
        native = retriever.retrieve(QUESTION)
        with attach(retriever, k=K):
            assert ids(retriever.retrieve(QUESTION)) == pursued(model, QUESTION, native)
        assert retriever.seen == 2

    def test_somebody_elses_replacement_still_runs(
        self, retriever: Any, model: FakeEmbeddingModel
    ) -> None:
        original, seen = retriever.retrieve, []

        def traced(query: str, enable_reflection: bool | None = None) -> Any:
            seen.append(query)
            return original(query, enable_reflection)

        retriever.retrieve = traced
        native = original(QUESTION)
        with attach(retriever, k=K) as handle:
            assert ids(retriever.retrieve(QUESTION)) == ids(native)[:K]
        assert seen == [QUESTION]
        assert handle.stats().fallbacks == {"no_query_vector": 1}
        assert retriever.retrieve is traced

    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"k": 0}, "k must be"),
            ({"k": 2.5}, "k must be"),
            ({"pool_size": 0}, "pool_size must be"),
            ({"preset": "best"}, "preset must be"),
            ({"discount": 2.0}, "discount must be"),
        ],
    )
    def test_a_wrong_argument_is_named(
        self, retriever: Any, wrong: dict[str, Any], says: str
    ) -> None:
        for call in (lambda: attach(retriever, **wrong), lambda: install(**wrong)):
            with pytest.raises(ValueError, match=says):
                call()
        assert len(retriever.retrieve(QUESTION)) == 25

    def test_something_else_is_refused_by_its_type(self) -> None:
        with pytest.raises(TypeError, match=r"SimpleMemSystem.*got dict"):
            attach({}, k=K)

    def test_simplemems_prints_stay_its_own(
        self, store: Any, llm: FakeLLM, capsys: pytest.CaptureFixture[str]
    ) -> None:
        retriever = make_retriever(store, llm.client(), enable_parallel_retrieval=False)
        capsys.readouterr()
        retriever.retrieve(QUESTION)
        without = capsys.readouterr().out
        with attach(retriever, k=K):
            retriever.retrieve(QUESTION)

        assert capsys.readouterr().out == without
        assert QUESTION in without


def _raise(*_: Any) -> Any:
    raise OSError("the disk is gone")


# Fault -> what is done to the vectors that were read, and the cause that is counted.
FAULTS: dict[str, tuple[Callable[[list[Any]], Any], str]] = {
    "the query fails": (_raise, "OSError"),
    "no vectors": (lambda vs: [None for _ in vs], "missing_vector"),
    "NaN": (lambda vs: [np.full_like(v, np.nan) for v in vs], "not_finite"),
    "zeros": (lambda vs: [np.zeros_like(v) for v in vs], "zero_vector"),
    "another dimension": (lambda vs: [v[:3] for v in vs], "dimension_mismatch"),
    "one vector short": (lambda vs: vs[1:], "misaligned_vectors"),
}


class TestTrouble:
    @pytest.mark.parametrize("fault", FAULTS)
    def test_native_top_k_and_one_warning(
        self,
        retriever: Any,
        fault: str,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        import mempursuit_adapters.simplemem.retriever as module

        native = retriever.retrieve(QUESTION)
        break_, cause = FAULTS[fault]
        read = module.stored_vectors
        monkeypatch.setattr(module, "stored_vectors", lambda *given: break_(read(*given)))

        with attach(retriever, k=K) as handle:
            for _ in range(3):
                assert ids(retriever.retrieve(QUESTION)) == ids(native)[:K]

        assert handle.stats().fallbacks == {cause: 3}
        assert [r.levelname for r in _ours(caplog)] == ["WARNING"]
        assert cause in _ours(caplog)[0].getMessage()

    def test_an_entry_deleted_behind_simplemems_back_keeps_its_place(
        self, retriever: Any, model: FakeEmbeddingModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        native = retriever.retrieve(QUESTION)
        lost = native[1]
        found = type(retriever).retrieve

        def deleting(self: Any, *args: Any) -> Any:
            entries = found(self, *args)
            self.vector_store.table.delete(f"entry_id = '{lost.entry_id}'")
            return entries

        monkeypatch.setattr(type(retriever), "retrieve", deleting)
        with attach(retriever, k=K) as handle:
            chosen = ids(retriever.retrieve(QUESTION))

        rest = pursued(model, QUESTION, [e for e in native if e is not lost], K - 1)
        assert chosen == [rest[0], lost.entry_id, *rest[1:]]
        assert handle.stats().fallbacks == {"missing_vector": 1}

    def test_a_store_that_cannot_be_listened_to(
        self, store: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Sealed:
            """A store of the user's own, without a __dict__ to share."""

            __slots__ = ("embedding_model", "semantic_search", "table")

        sealed = Sealed()
        sealed.embedding_model, sealed.table = store.embedding_model, store.table
        sealed.semantic_search = store.semantic_search
        retriever = make_retriever(sealed, semantic_top_k=25)
        native = retriever.retrieve(QUESTION)
        with attach(retriever, k=K) as handle:
            assert ids(retriever.retrieve(QUESTION)) == ids(native)[:K]

        assert handle.stats().fallbacks == {"TypeError": 1}
        assert len(_ours(caplog)) == 1

    def test_an_unusable_question_vector(
        self, retriever: Any, model: FakeEmbeddingModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(model, "vector", lambda _: np.zeros(model.dimension, np.float32))
        native = retriever.retrieve(QUESTION)
        with attach(retriever, k=K) as handle:
            assert ids(retriever.retrieve(QUESTION)) == ids(native)[:K]
        assert handle.stats().fallbacks == {"unusable_query_vector": 1}


def _ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [r for r in caplog.records if r.name.startswith("mempursuit")]
