"""A server on loopback that speaks the chat-completions protocol, and does as a test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}


@dataclass
class Reply:
    """What the server sends back; `body` is JSON, or bytes sent as they are."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def says(text: str | None, *, finish: str = "stop", usage: Any = USAGE) -> Reply:
    """Return a chat completion with `text`."""
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [
            {
                "index": 0, "finish_reason": finish,
                "message": {"role": "assistant", "content": text},
            }
        ],
    }  # fmt: skip
    return Reply(body=body | ({"usage": usage} if usage else {}))


def refuses(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    """Return an error in OpenAI's form; `retry_after="3"` becomes the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error": {"message": message, "code": code, "type": "x"}}, named)


class ChatServer:
    """Answers every request by `script(request, n)`, n counting from 0; as a context manager.

    Attributes:
        requests: the bodies, as they came.
        keys: the Authorization headers, as they came.
        peak: the most requests that were there at once.
    """

    def __init__(self, script: Callable[[dict[str, Any], int], Reply]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.peak = 0
        self._here = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    n = len(server.requests)
                    server.requests.append(body)
                    server.keys.append(self.headers.get("Authorization"))
                    server._here += 1
                    server.peak = max(server.peak, server._here)
                try:
                    reply = script(body, n)
                finally:
                    with server._lock:
                        server._here -= 1
                raw = (
                    reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                )
                try:
                    self.send_response(reply.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(raw)))
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(raw)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client was killed, as the test wanted

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def prompts(self, model: str | None = None) -> list[str]:
        """Return the prompts that came, of one model or all."""
        return [
            r["messages"][0]["content"] for r in list(self.requests) if model in (None, r["model"])
        ]

    def __enter__(self) -> ChatServer:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._http.shutdown()
        self._http.server_close()
