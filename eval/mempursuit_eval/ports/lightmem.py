"""LightMem's read path over the real Qdrant, for machines without LightMem's own source.

Attribute and argument names are LightMem's (0.1.0), so that the adapter takes this as it takes the
real object. What writes with an LLM (extraction, updates, summaries) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from qdrant_client import QdrantClient, models

TAG_PREFIX, TAG_SUFFIX = "[[BAM_TAGS:", "]]"

Hit = dict[str, Any]


class Embedder(Protocol):
    """LightMem's text embedder."""

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of one text, (d,)."""
        ...


class Qdrant:
    """A cosine collection; `search` fetches vectors and returns none, as LightMem's does."""

    def __init__(self, client: QdrantClient, collection_name: str, dimension: int) -> None:
        self.client = client
        self.collection_name = collection_name
        if not client.collection_exists(collection_name):
            client.create_collection(
                collection_name,
                vectors_config=models.VectorParams(
                    size=dimension, distance=models.Distance.COSINE, on_disk=True
                ),
            )

    def insert(
        self,
        vectors: Sequence[Sequence[float]],
        payloads: Sequence[dict[str, Any]],
        ids: Sequence[str],
    ) -> None:
        """Write one point a vector."""
        points = [
            models.PointStruct(id=i, vector=list(vector), payload=payload)
            for i, vector, payload in zip(ids, vectors, payloads, strict=True)
        ]
        self.client.upsert(self.collection_name, points)

    def search(
        self,
        query_vector: Sequence[float],
        limit: int = 5,
        filters: dict[str, Any] | None = None,
        exclude_ids: Sequence[str] | None = None,
        return_full: bool = False,
    ) -> list[Hit]:
        """Return the `limit` points of the largest cosine that pass `filters`.

        A filter is a value to equal, or {"gte": …, "lte": …}; other bounds are ignored, as they
        are by LightMem.
        """
        found = self.client.query_points(
            self.collection_name,
            query=list(query_vector),
            query_filter=_conditions(filters or {}, exclude_ids or ()),
            limit=limit,
            with_payload=True,
            with_vectors=True,
        ).points
        hits: list[Hit] = [{"id": point.id, "score": point.score} for point in found]
        if return_full:
            for hit, point in zip(hits, found, strict=True):
                hit["payload"] = point.payload
        return hits

    def get_all(self) -> list[Hit]:
        """Return every point with id, payload and vector."""
        points, _ = self.client.scroll(
            self.collection_name,
            limit=self.client.count(self.collection_name).count or 1,
            with_payload=True,
            with_vectors=True,
        )
        return [{"id": p.id, "payload": p.payload, "vector": p.vector} for p in points]


class LightMemory:
    """The part of LightMem's memory that answers `retrieve`."""

    retrieve_strategy = "embedding"

    def __init__(self, text_embedder: Embedder, embedding_retriever: Qdrant) -> None:
        self.text_embedder = text_embedder
        self.embedding_retriever = embedding_retriever

    def retrieve(
        self,
        query: str,
        limit: int = 10,
        filters: dict[str, Any] | None = None,
        *,
        boundmem_tags: Any = None,
        boundmem_drop_untagged: bool = False,
    ) -> list[str]:
        """Return the memories nearest to `query`, each as "<time> <weekday> <memory>".

        Tags are applied to the `limit` memories found, so fewer may come back.
        """
        hits = self.embedding_retriever.search(
            query_vector=self.text_embedder.embed(query),
            limit=limit,
            filters=filters,
            return_full=True,
        )
        if boundmem_tags is not None:
            hits, _ = filter_by_tags(
                results=hits,
                environment_tags=boundmem_tags,
                drop_untagged_on_tag_filter=boundmem_drop_untagged,
            )
        return [
            f"{p.get('time_stamp', '')} {p.get('weekday', '')} {p.get('memory', '')}"
            for p in (hit["payload"] for hit in hits)
        ]


def open_memory(text_embedder: Embedder, path: Path, dimension: int) -> LightMemory:
    """Open, or create, the memory stored under `path`."""
    client = QdrantClient(path=str(path))
    return LightMemory(text_embedder, Qdrant(client, "lightmem", dimension))


def filter_by_tags(
    *,
    results: Sequence[Hit],
    environment_tags: Any,
    drop_untagged_on_tag_filter: bool = False,
) -> tuple[list[Hit], dict[str, Any]]:
    """Return copies of the hits that share a tag with the environment, and which they were.

    A hit's tags are its payload's `bam_tags` and those its memory begins with; the copies'
    memories are without them. Untagged hits stay unless they are to be dropped.
    """
    wanted = _tag_keys(environment_tags)
    kept, positions = [], []
    for i, hit in enumerate(results):
        own, memory = _split_tags(hit["payload"].get("memory", ""))
        tags = _tag_keys([own, hit["payload"].get("bam_tags")])
        if not wanted or (tags & wanted if tags else not drop_untagged_on_tag_filter):
            kept.append({**hit, "payload": {**hit["payload"], "memory": memory}})
            positions.append(i)
    return kept, {"tag_kept_indices": positions}


def _conditions(filters: dict[str, Any], exclude: Sequence[str]) -> models.Filter | None:
    if not filters and not exclude:
        return None
    return models.Filter(
        must=[
            models.FieldCondition(
                key=key, range=models.Range(gte=value.get("gte"), lte=value.get("lte"))
            )
            if isinstance(value, dict)
            else models.FieldCondition(key=key, match=models.MatchValue(value=value))
            for key, value in filters.items()
        ],
        must_not=[models.HasIdCondition(has_id=list(exclude))] if exclude else None,
    )


def _split_tags(memory: str) -> tuple[Any, str]:
    """Return the tags a memory begins with, and what follows them."""
    if not memory.startswith(TAG_PREFIX):
        return None, memory
    try:
        tags, end = json.JSONDecoder().raw_decode(memory, len(TAG_PREFIX))
    except json.JSONDecodeError:
        return None, memory
    if not memory.startswith(TAG_SUFFIX, end):
        return None, memory
    return tags, memory[end + len(TAG_SUFFIX) :].removeprefix("\r\n").removeprefix("\n")


def _tag_keys(tags: Any) -> set[str]:
    """Return nested tags flat, without case."""
    if isinstance(tags, (list, tuple, set)):
        return set().union(*map(_tag_keys, tags)) if tags else set()
    key = str(tags).strip().lower() if tags is not None else ""
    return {key} if key else set()
