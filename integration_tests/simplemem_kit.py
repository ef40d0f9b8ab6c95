"""Real SimpleMem, of either version, with a deterministic encoder and an LLM on loopback."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

DIMENSION = 16

# 0.3.0 moved the store under `core`; `HybridRetriever` stayed where it was.
_NEW = find_spec("simplemem.core.database") is not None
LAYOUT = "0.3.0" if _NEW else "0.1.0"
_store = import_module(
    "simplemem.core.database.vector_store" if _NEW else "simplemem.database.vector_store"
)
_entries = import_module(
    "simplemem.core.models.memory_entry" if _NEW else "simplemem.models.memory_entry"
)
_llm = import_module("simplemem.core.utils.llm_client" if _NEW else "simplemem.utils.llm_client")
SYSTEM_MODULE = "simplemem.text.system" if _NEW else "simplemem.system"

VectorStore: Any = _store.VectorStore
MemoryEntry: Any = _entries.MemoryEntry
LLMClient: Any = _llm.LLMClient
HybridRetriever: Any = import_module("simplemem.core.hybrid_retriever").HybridRetriever


class FakeEmbeddingModel:
    """Random unit vectors that depend on the text alone; keeps every text it embedded."""

    dimension = DIMENSION

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def vector(self, text: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        v = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
        return v / np.linalg.norm(v)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded.extend(texts)
        return np.stack([self.vector(t) for t in texts])

    def encode_single(self, text: str, is_query: bool = False) -> np.ndarray:
        self.embedded.append(text)
        return self.vector(text)


def make_entries(n: int, prefix: str = "e") -> list[Any]:
    """Return n entries with ids e0, e1, … and distinct texts."""
    return [
        MemoryEntry(
            entry_id=f"{prefix}{i}",
            lossless_restatement=f"Fact {prefix}{i}.",
            persons=["Alice" if i % 2 else "Bob"],
        )
        for i in range(n)
    ]


def make_store(folder: Path, model: Any, entries: Sequence[Any], table: str = "t") -> Any:
    """Return a VectorStore in `folder` holding `entries`."""
    store = VectorStore(db_path=str(folder), embedding_model=model, table_name=table)
    store.add_entries(list(entries))
    model.embedded.clear()
    return store


def make_system(folder: Path, model: Any, llm: FakeLLM, monkeypatch: Any, **options: Any) -> Any:
    """Return a SimpleMemSystem that embeds with `model` and asks `llm`."""
    module = import_module(SYSTEM_MODULE)
    monkeypatch.setattr(module, "EmbeddingModel", lambda: model)
    return module.SimpleMemSystem(
        api_key="none",
        model="fake",
        base_url=llm.url,
        db_path=str(folder),
        use_streaming=False,
        **options,
    )


def ids(entries: Sequence[Any]) -> list[str]:
    """Return the entries' ids."""
    return [entry.entry_id for entry in entries]


def make_retriever(store: Any, llm: Any = None, **options: Any) -> Any:
    """Return a HybridRetriever; with no LLM, planning is off."""
    options.setdefault("enable_planning", llm is not None)
    return HybridRetriever(llm, store, **options)


class FakeLLM:
    """What the loopback server answers, and what it was asked.

    SimpleMem picks the keys it wants, so one answer serves planning, analysis, reflection and ask.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.prompts: list[str] = []
        self.answer: dict[str, Any] = {
            "question_type": "factual",
            "required_info": [{"info_type": "any"}],
            "queries": ["first part", "second part"],
            "keywords": ["fact"],
            "persons": ["Alice"],
            "assessment": "incomplete",
            "targeted_queries": ["a missing piece", "another missing piece"],
            "answer": "forty-two",
        }

    def client(self) -> Any:
        """Return SimpleMem's own client, talking to the server."""
        return LLMClient(api_key="none", model="fake", base_url=self.url, use_streaming=False)


@contextmanager
def loopback_llm() -> Iterator[FakeLLM]:
    """Serve OpenAI's chat completions on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            llm.prompts.append("\n".join(m["content"] for m in body["messages"]))
            message = {"role": "assistant", "content": json.dumps(llm.answer)}
            reply = json.dumps(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": body["model"],
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    llm = FakeLLM(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield llm
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
