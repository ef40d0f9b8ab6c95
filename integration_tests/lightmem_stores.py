"""Filled LightMem stores for tests: the evaluator's port, and the real source where it is given.

MEMPURSUIT_LIGHTMEM_SRC names a checkout of github.com/zjunlp/LightMem; importing it needs
transformers (4.x), tiktoken and openai, but no torch.
"""

from __future__ import annotations

import os
import sys
import types
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mempursuit_eval.backbones.lightmem import open_package
from mempursuit_eval.ports import lightmem as port

DIMENSION = 16
SIZE = 90
KINDS = ("port", "source")
QUERY = "what did they do together?"


class CountingEmbedder:
    """LightMem's embedder interface over hand-made vectors; counts its calls."""

    def __init__(self, vectors: dict[str, np.ndarray]) -> None:
        self.vectors = vectors
        self.calls = 0

    def embed(self, text: str) -> list[float]:
        self.calls += 1
        return self.vectors[text].tolist()


def make_vectors(seed: int = 0) -> dict[str, np.ndarray]:
    """Return the query and 90 memories: many repeats of one topic, few of what else is asked."""
    rng = np.random.default_rng(seed)
    topics = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
    share = [0] * 50 + [1] * 12 + [2] * 8 + list(range(3, 13)) * 2
    vectors = {
        f"memory {i:02d} of topic {t}": topics[t] + 0.15 * rng.normal(size=DIMENSION)
        for i, t in enumerate(share)
    }
    vectors[QUERY] = topics[0] + 0.6 * topics[1] + 0.5 * topics[2]
    return vectors


def source_folder() -> Path:
    """Return the LightMem checkout, or skip."""
    folder = os.environ.get("MEMPURSUIT_LIGHTMEM_SRC")
    if not folder:
        pytest.skip("MEMPURSUIT_LIGHTMEM_SRC does not name a LightMem checkout")
    return Path(folder)


def source_module(name: str = "lightmem.memory.lightmem") -> types.ModuleType:
    """Import a module of the LightMem checkout, or skip."""
    path = str(source_folder() / "src")
    if path not in sys.path:
        sys.path.insert(0, path)
    for needed in ("transformers", "tiktoken", "openai"):
        pytest.importorskip(needed, reason=f"LightMem's source imports {needed}")
    return import_module(name)


def load_retrievers(patch: pytest.MonkeyPatch) -> types.ModuleType:
    """Load the loader and retriever of the checkout's LoCoMo experiment, or skip."""
    source_module()
    # Imported at its top and used nowhere in it.
    patch.setitem(sys.modules, "spacy", types.ModuleType("spacy"))
    path = source_folder() / "experiments" / "locomo" / "retrievers.py"
    spec = spec_from_file_location("lightmem_locomo_retrievers", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def open_store(kind: str, embedder: Any, path: Path, dimension: int = DIMENSION) -> Any:
    """Return an empty LightMemory of that kind."""
    if kind == "port":
        return port.open_memory(embedder, path, dimension)
    return open_package(source_module(), embedder, path, dimension)


def fill(memory: Any, vectors: dict[str, np.ndarray]) -> None:
    """Insert every memory; odd ones carry the tag "home", and every third a tag prefix "work"."""
    names = [n for n in vectors if n != QUERY]
    memory.embedding_retriever.insert(
        vectors=[vectors[n].tolist() for n in names],
        payloads=[_payload(i, name) for i, name in enumerate(names)],
        ids=[point_id(i) for i in range(len(names))],
    )


def point_id(i: int) -> str:
    return f"00000000-0000-4000-8000-{i:012d}"


def _payload(i: int, name: str) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "time_stamp": f"2023-05-{i % 28 + 1:02d}T10:00:00.000",
        "float_time_stamp": 1_683_000_000.0 + i,
        "weekday": "Mon",
        "speaker_name": "Ana" if i % 2 else "Ben",
        "memory": f'[[BAM_TAGS:["work"]]]\n{name}' if i % 3 == 0 else name,
        "consolidated": False,
    }
    if i % 2:
        payload["bam_tags"] = ["home"]
    return payload
