"""The entry retriever of LightMem's own LoCoMo experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from integration_tests.lightmem_stores import (
    DIMENSION,
    QUERY,
    SIZE,
    CountingEmbedder,
    fill,
    load_retrievers,
    make_vectors,
    open_store,
)
from mempursuit_adapters import lightmem
from mempursuit_core import select


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The experiment's `retrievers` module."""
    return load_retrievers(monkeypatch)


@pytest.fixture
def entries(experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the experiment's loader reads from a store of the real LightMem."""
    memory = open_store("source", None, tmp_path / "store")
    fill(memory, make_vectors())
    memory.embedding_retriever.client.close()
    config = experiment.QdrantConfig
    monkeypatch.setattr(
        experiment,
        "QdrantConfig",  # the experiment's own says 384
        lambda **kwargs: config(**{**kwargs, "embedding_model_dims": DIMENSION}),
    )
    loader = experiment.QdrantEntryLoader(str(tmp_path / "store"))
    found: list[Any] = loader.load_entries("lightmem", with_vectors=True)
    assert len(found) == SIZE
    return found


@pytest.mark.parametrize("k", [10, 20])
def test_the_retriever_returns_the_pursuits_picks(
    experiment: Any, entries: list[Any], k: int
) -> None:
    embedder = CountingEmbedder(make_vectors())
    retriever = experiment.VectorRetriever(embedder)
    native = retriever.retrieve(entries, QUERY, limit=60)
    stored = {e["id"]: e["vector"] for e in entries}
    picks = select(embedder.vectors[QUERY], [stored[r["id"]] for r in native], k)
    embedder.calls = 0
    with lightmem.attach(retriever):
        found = retriever.retrieve(entries, QUERY, limit=k)
    assert found == [native[i] for i in picks.indices]
    assert found != native[:k]
    assert embedder.calls == 1
    assert retriever.retrieve(entries, QUERY, limit=k) == native[:k]
    assert "retrieve" not in vars(retriever)
    # The picks go on into the experiment's prompt as its own results do.
    assert experiment.format_related_memories(found).count("Memory recorded on") == k


def test_each_speaker_has_a_pursuit_of_its_own(experiment: Any, entries: list[Any]) -> None:
    retriever = experiment.VectorRetriever(CountingEmbedder(make_vectors()))
    with lightmem.attach(retriever, pool_size=20) as handle:
        for speaker in ("Ana", "Ben"):
            group = [e for e in entries if e["payload"]["speaker_name"] == speaker]
            found = retriever.retrieve(group, QUERY, limit=10)
            assert len(found) == 10
            assert {e["payload"]["speaker_name"] for e in found} == {speaker}
    assert handle.stats().searches == 2
