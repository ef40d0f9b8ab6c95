"""Hearing the vector of the user's question while SimpleMem searches with it.

SimpleMem embeds a question deep inside `vector_store.semantic_search`, often in a worker thread
that inherits no context variables. So every call gets its own view of the retriever, whose store
embeds through a listener: nothing is left on the user's objects, and calls cannot mix.
"""

from __future__ import annotations

from typing import Any

from mempursuit_adapters.pool import Vector
from mempursuit_adapters.views import view


class QuestionListener:
    """SimpleMem's embedding model, remembering the vector it returned for one question.

    Attributes:
        vector: (d,) the question's embedding; None until SimpleMem has computed it.
    """

    def __init__(self, question: str) -> None:
        self._question = question
        self._model: Any = None
        self.vector: Vector | None = None

    def encode_single(self, text: str, *args: Any, **kwargs: Any) -> Any:
        """Embed `text` with SimpleMem's model, once, and remember the question's vector."""
        vector = self._model.encode_single(text, *args, **kwargs)
        if text == self._question:
            self.vector = vector
        return vector

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def on(self, retriever: Any) -> Any:
        """Return a view of `retriever` whose semantic searches embed through this listener."""
        store = retriever.vector_store
        self._model = store.embedding_model
        return view(retriever, "vector_store", view(store, "embedding_model", self))
