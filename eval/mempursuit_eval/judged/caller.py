"""Asking once: replies come from the disk, from a call already on its way, or from a new one."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass

from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.calls import Reply, Request
from mempursuit_eval.judged.client import Chat


@dataclass
class Spent:
    """What this run has asked and paid so far, in calls and tokens."""

    calls: int = 0
    kept: int = 0  # replies found on the disk
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False


class Caller:
    """A chat behind a cache; threads that want the same reply share one call."""

    def __init__(self, cache: ReplyCache, chat: Chat) -> None:
        self.spent = Spent()
        self._cache = cache
        self._chat = chat
        self._lock = threading.Lock()
        self._on_their_way: dict[str, Future[Reply]] = {}

    def ask(self, request: Request) -> Reply:
        """Return the reply to `request`, paying for it only if nobody has.

        Raises:
            CallFailedError, EndpointError: as `Chat.send`; failures are not kept.
        """
        with self._lock:
            coming = self._on_their_way.get(request.key)
            if coming is None:
                mine = self._on_their_way[request.key] = Future()
        if coming is not None:
            return coming.result()
        try:
            reply = self._find_or_send(request)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(reply)
            return reply
        finally:
            with self._lock:
                del self._on_their_way[request.key]

    def _find_or_send(self, request: Request) -> Reply:
        kept = self._cache.get(request.key)
        if kept is not None:
            with self._lock:
                self.spent.kept += 1
            return kept
        reply = self._chat.send(request)
        self._cache.put(request.key, request.stage, request.model, reply)
        with self._lock:
            self.spent.calls += 1
            self.spent.prompt_tokens += reply.usage.prompt
            self.spent.completion_tokens += reply.usage.completion
            self.spent.estimated |= reply.usage.estimated
        return reply
