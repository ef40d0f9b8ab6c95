"""A call's view of a retriever: hears the question's vector, changes nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mempursuit_adapters.simplemem.listening import QuestionListener


class _Model:
    dimension = 1

    def encode_single(self, text: str, is_query: bool = False) -> list[float]:
        return [float(len(text)) if is_query else -1.0]


class _Store:
    def __init__(self) -> None:
        self.embedding_model = _Model()

    def semantic_search(self, query: str) -> list[float]:
        return self.embedding_model.encode_single(query, is_query=True)


class _Retriever:
    def __init__(self) -> None:
        self.vector_store = _Store()
        self.calls = 0

    def retrieve(self, query: str) -> list[list[float]]:
        self.calls += 1
        with ThreadPoolExecutor(2) as executor:
            return list(executor.map(self.vector_store.semantic_search, ["part", query, "other"]))


def test_the_question_is_heard_from_a_worker_thread_among_other_searches() -> None:
    listener = QuestionListener("question")

    assert listener.on(_Retriever()).retrieve("question") == [[4.0], [8.0], [5.0]]
    assert listener.vector == [8.0]


def test_nothing_is_heard_of_other_texts() -> None:
    listener = QuestionListener("another question")
    listener.on(_Retriever()).retrieve("question")

    assert listener.vector is None


def test_the_target_keeps_its_parts_and_receives_what_its_methods_write() -> None:
    retriever = _Retriever()
    store, model = retriever.vector_store, retriever.vector_store.embedding_model
    view = QuestionListener("q").on(retriever)
    view.retrieve("q")
    view.vector_store.added = True

    assert retriever.calls == 1
    assert retriever.vector_store is store
    assert store.embedding_model is model
    assert vars(store)["added"] is True


def test_a_view_is_still_an_instance_of_the_users_class_and_calls_its_overrides() -> None:
    class Louder(_Retriever):
        def retrieve(self, query: str) -> list[list[float]]:
            return super().retrieve(query.upper())

    listener = QuestionListener("Q!")
    view = listener.on(Louder())

    assert isinstance(view, Louder)
    view.retrieve("q!")
    assert listener.vector == [2.0]


def test_the_embedding_model_is_itself_in_everything_else() -> None:
    view: Any = QuestionListener("q").on(_Retriever())

    assert view.vector_store.embedding_model.dimension == 1


def test_two_views_of_one_retriever_hear_their_own_question() -> None:
    retriever = _Retriever()
    short, long = QuestionListener("ab"), QuestionListener("abcd")
    first, second = short.on(retriever), long.on(retriever)
    second.retrieve("abcd")
    first.retrieve("ab")

    assert (short.vector, long.vector) == ([2.0], [4.0])
