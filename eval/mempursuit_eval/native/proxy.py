"""An OpenAI-compatible endpoint on loopback, where every framework's calls are kept and counted."""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from mempursuit_eval.judged.caller import Caller
from mempursuit_eval.judged.calls import Reply
from mempursuit_eval.judged.errors import CallFailedError
from mempursuit_eval.native.calls import WriterCall, stage_of

_CHAT = "/v1/chat/completions"
_CUT = "length"  # the finish reason of a reply that ran into its cap
# Never a status that clients try again after: all that may help has been tried when this is sent.
_FAILED = 400


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # writers may open many connections at a time


@dataclass
class Ledger:
    """What one conversation's writing took, whether its replies were new or kept from before."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cut: int = 0  # replies that ran into their cap

    def add(self, reply: Reply) -> None:
        """Count one reply."""
        self.calls += 1
        self.prompt_tokens += reply.usage.prompt
        self.completion_tokens += reply.usage.completion
        self.estimated |= reply.usage.estimated
        self.cut += reply.finish == _CUT


class WriterProxy:
    """Serves the calls of one framework writing one conversation; as a context manager.

    A request made again after its reply came (a framework that could not read the reply tries so)
    is another sample, and so it is when the whole writing is repeated: a resumed run finds every
    reply it had in its place. A request made again before that waits for the same reply.

    The first call that fails for good fails all later ones at once: frameworks tend to go on
    without what they could not get, and the store would pass for a whole one.
    """

    def __init__(
        self,
        caller: Caller,
        framework: str,
        concurrency: int,
        replied: Callable[[int], None] = lambda calls: None,
    ) -> None:
        self.ledger = Ledger()
        self.failure: Exception | None = None
        self.in_flight = 0
        self.key = secrets.token_urlsafe(16)  # other users of this machine must not spend the real
        self._caller = caller
        self._stage = stage_of(framework)
        self._replied = replied
        self._samples: Counter[str] = Counter()  # replies given, by the request's key
        self._counted: set[str] = set()
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(concurrency)
        self._http = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def answer(self, body: Any) -> tuple[int, dict[str, Any]]:
        """Return the status and the JSON with which a request is answered."""
        with self._lock:
            if self.failure is not None:
                return _FAILED, _error(f"an earlier call failed: {self.failure}")
            self.in_flight += 1
        try:
            call, reply = self._ask(self._read(body))
        except Exception as error:  # whatever it is, it must not pass for a reply
            with self._lock:
                self.failure = self.failure or error
            return _FAILED, _error(str(error))
        finally:
            with self._lock:
                self.in_flight -= 1
        return 200, _completion(call, reply)

    def _read(self, body: Any) -> WriterCall:
        try:
            return WriterCall.from_body(self._stage, body)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CallFailedError(f"a request that is not served here: {error!r}") from None

    def _ask(self, first: WriterCall) -> tuple[WriterCall, Reply]:
        with self._lock:
            call = replace(first, repeat=self._samples[first.key])
        with self._places:
            reply = self._caller.ask(call)
        with self._lock:
            self._samples[first.key] = call.repeat + 1
            new = call.key not in self._counted
            self._counted.add(call.key)
            if new:
                self.ledger.add(reply)
            calls = self.ledger.calls
        if new:
            self._replied(calls)
        return call, reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Authorization") != f"Bearer {proxy.key}":
                    return self._send(401, _error("this endpoint serves one process alone"))
                if self.path != _CHAT:
                    return self._send(404, _error(f"only {_CHAT} is served here"))
                try:
                    body = json.loads(raw)
                except ValueError as error:
                    return self._send(_FAILED, _error(f"not JSON: {error}"))
                return self._send(*proxy.answer(body))

            def _send(self, status: int, body: dict[str, Any]) -> None:
                raw = json.dumps(body).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except ConnectionError:
                    pass  # the framework has gone; its reply is kept

            def log_message(self, *args: object) -> None:
                pass

        return Handler

    def __enter__(self) -> WriterProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()


def _completion(call: WriterCall, reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "id": f"chatcmpl-{call.key[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": call.model,
        "choices": [
            {
                "index": 0,
                "finish_reason": reply.finish or "stop",
                "message": {"role": "assistant", "content": reply.text},
            }
        ],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.prompt + usage.completion,
        },
    }


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "mempursuit", "code": None}}
