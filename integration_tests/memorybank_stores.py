"""MemoryBank's own source, and the FAISS stores it and today's programs read.

MEMPURSUIT_MEMORYBANK_SRC names a checkout of github.com/zhongwanjun/MemoryBank-SiliconFriend. Its
code runs over langchain 0.0.146 where that is installed; elsewhere over `OldFAISS`, the store of
that version in the few methods that MemoryBank calls, on the real FAISS. Stood in for in both cases
when absent: torch (asked for a device name) and unstructured (asked whether it is there).
"""

from __future__ import annotations

import os
import pickle
import sys
import types
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest


class CountingEmbeddings:
    """LangChain's embeddings interface over an encoder; counts its calls."""

    def __init__(self, encode: Any) -> None:
        self.encode = encode
        self.query_calls = 0

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(x) for x in row] for row in self.encode(list(texts))]

    def embed_query(self, text: str) -> list[float]:
        self.query_calls += 1
        return [float(x) for x in self.encode([text])[0]]


@dataclass
class OldDocument:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


class OldDocstore:
    def __init__(self, documents: dict[str, Any]) -> None:
        self._dict = documents

    def search(self, search: str) -> Any:
        return self._dict.get(search, f"ID {search} not found.")


class OldFAISS:
    """langchain 0.0.146's FAISS store: a flat L2 index, a docstore, and the map between them."""

    def __init__(
        self, embedding_function: Any, index: Any, docstore: Any, index_to_docstore_id: Any
    ) -> None:
        self.embedding_function = embedding_function
        self.index = index
        self.docstore = docstore
        self.index_to_docstore_id = index_to_docstore_id

    @classmethod
    def from_documents(cls, documents: Sequence[Any], embedding: Any) -> OldFAISS:
        vectors = np.array(
            embedding.embed_documents([d.page_content for d in documents]), dtype=np.float32
        )
        index = faiss.IndexFlatL2(vectors.shape[1])
        index.add(vectors)
        ids = {i: str(uuid.uuid4()) for i in range(len(documents))}
        copies = {ids[i]: OldDocument(d.page_content, d.metadata) for i, d in enumerate(documents)}
        return cls(embedding.embed_query, index, OldDocstore(copies), ids)

    def save_local(self, folder_path: str) -> None:
        folder = Path(folder_path)
        folder.mkdir(parents=True, exist_ok=True)
        faiss.write_index(self.index, str(folder / "index.faiss"))
        (folder / "index.pkl").write_bytes(pickle.dumps((self.docstore, self.index_to_docstore_id)))

    @classmethod
    def load_local(cls, folder_path: str, embeddings: Any) -> OldFAISS:
        folder = Path(folder_path)
        docstore, ids = pickle.loads((folder / "index.pkl").read_bytes())
        index = faiss.read_index(str(folder / "index.faiss"))
        return cls(embeddings.embed_query, index, docstore, ids)

    def similarity_search_with_score_by_vector(
        self, embedding: Any, k: int = 4
    ) -> list[tuple[Any, float]]:
        scores, indices = self.index.search(np.array([embedding], dtype=np.float32), k)
        return [
            (self.docstore.search(self.index_to_docstore_id[i]), scores[0][j])
            for j, i in enumerate(indices[0])
            if i != -1
        ]

    def similarity_search_with_score(self, query: str, k: int = 4) -> list[tuple[Any, float]]:
        return self.similarity_search_with_score_by_vector(self.embedding_function(query), k)

    def similarity_search_by_vector(self, embedding: Any, k: int = 4) -> list[Any]:
        return [d for d, _ in self.similarity_search_with_score_by_vector(embedding, k)]


def source_folder() -> Path:
    """Return the MemoryBank checkout, or skip."""
    folder = os.environ.get("MEMPURSUIT_MEMORYBANK_SRC")
    if not folder:
        pytest.skip("MEMPURSUIT_MEMORYBANK_SRC does not name a MemoryBank checkout")
    return Path(folder)


@contextmanager
def original(folder: Path, module: str = "local_doc_qa") -> Iterator[Any]:
    """Import `memory_retrieval.<module>` of a checkout; everything is put back at the end.

    What is put back includes the search that MemoryBank writes over the FAISS class.
    """
    root = str(folder / "memory_bank")
    stand_ins = _stand_ins()
    hidden = {name: sys.modules[name] for name in stand_ins if name in sys.modules}
    sys.modules.update(stand_ins)
    sys.path.insert(0, root)
    store = import_module("langchain.vectorstores").FAISS
    search = store.similarity_search_with_score_by_vector
    try:
        yield import_module(f"memory_retrieval.{module}")
    finally:
        store.similarity_search_with_score_by_vector = search
        sys.path.remove(root)
        for name in list(sys.modules):
            if name in stand_ins or name.split(".")[0] == "memory_retrieval":
                del sys.modules[name]
        sys.modules.update(hidden)


def has_old_langchain() -> bool:
    """Say whether the langchain that MemoryBank pins is installed."""
    try:
        return version("langchain") == "0.0.146"
    except PackageNotFoundError:
        return False


def old_langchain() -> tuple[Any, Any, Any]:
    """Return FAISS, Document and InMemoryDocstore of langchain 0.0.146, or their stand-ins."""
    if not has_old_langchain():
        return OldFAISS, OldDocument, OldDocstore
    return (
        import_module("langchain.vectorstores").FAISS,
        import_module("langchain.docstore.document").Document,
        import_module("langchain.docstore.in_memory").InMemoryDocstore,
    )


def _stand_ins() -> dict[str, types.ModuleType]:
    made: dict[str, types.ModuleType] = {}

    def module(name: str, **content: Any) -> None:
        made[name] = types.ModuleType(name)
        vars(made[name]).update(content)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, made[name])

    if find_spec("torch") is None:
        unavailable = types.SimpleNamespace(is_available=lambda: False)
        module("torch")
        module("torch.cuda", is_available=lambda: False)
        module("torch.backends", mps=unavailable)
    if find_spec("unstructured") is None:
        module("unstructured")
        module("unstructured.__version__", __version__="0.5.4")
    if not has_old_langchain():
        splitters = ("TextSplitter", "CharacterTextSplitter", "NLTKTextSplitter")
        module("langchain")
        module("langchain.embeddings")
        module("langchain.embeddings.huggingface", HuggingFaceEmbeddings=object)
        module("langchain.vectorstores", FAISS=OldFAISS)
        module("langchain.document_loaders", UnstructuredFileLoader=_FileLoader)
        module("langchain.docstore")
        module("langchain.docstore.document", Document=OldDocument)
        module(
            "langchain.text_splitter",
            **{name: type(name, (), {}) for name in ("RecursiveCharacterTextSplitter", *splitters)},
        )
    return made


class _FileLoader:
    def __init__(self, file_path: str, mode: str = "single") -> None:
        self.file_path = file_path
