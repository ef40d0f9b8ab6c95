"""The embedded Qdrant that Mem0 and LightMem keep their stores in."""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def commit_without_waiting(store: Any) -> None:
    """Spare the local Qdrant a wait for the disk after every single point: minutes on a slow one.

    `store` is an object with the `client` and the `collection_name`. A store cut short by a power
    failure is filled again, so nothing is lost.
    """
    with suppress(Exception):
        persistence = store.client._client.collections[store.collection_name].storage
        persistence.storage.execute("PRAGMA synchronous=OFF")
