"""The stored vectors of what LightMem's search found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters.pool import Vector
from mempursuit_adapters.views import view

Search = Callable[..., list[dict[str, Any]]]
Heard = dict[Hashable, Vector]  # Qdrant's point id -> vector


def hearing(call: Search, searcher: Any) -> tuple[Search, Heard]:
    """Return `call`, a search bound to `searcher`, on a view of it, and the vectors it will hear.

    Where that cannot be done the call is returned as it is, and nothing is heard.
    """
    try:
        listener = _Listener(searcher.client)
        function = call.__func__  # type: ignore[attr-defined]
        return partial(function, view(searcher, "client", listener)), listener.vectors
    except Exception:  # somebody's replacement bound to nothing, a class without views
        return call, {}


def stored_vectors(
    searcher: Any, ids: Sequence[Hashable], heard: Heard
) -> list[Vector | None] | NDArray[np.float32]:
    """Return the vectors of `ids`; those that were not heard are read in one round trip."""
    missing = [i for i in ids if i not in heard]
    if missing:
        points = searcher.client.retrieve(
            collection_name=searcher.collection_name,
            ids=missing,
            with_payload=False,
            with_vectors=True,
        )
        heard = {**heard, **{point.id: point.vector for point in points}}
    vectors = [heard.get(i) for i in ids]
    try:
        return np.array(vectors, dtype=np.float32)  # which is how Qdrant keeps them
    except (TypeError, ValueError):  # some are missing or of another length
        return vectors


class _Listener:
    """A Qdrant client that keeps the vectors in the answers it passes on.

    LightMem's search asks Qdrant for vectors and then drops them; asking once more by id would
    take a second request, which on a remote server is most of what MemPursuit adds.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.vectors: Heard = {}

    def query_points(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._client.query_points(*args, **kwargs)
        with suppress(Exception):  # an answer of another form is read by id
            self.vectors.update((p.id, p.vector) for p in answer.points if p.vector is not None)
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)
