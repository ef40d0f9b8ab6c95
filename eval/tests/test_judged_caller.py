"""Threads that want the same reply share one call."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from eval.tests.chat_server import ChatServer, refuses, says
from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.caller import Caller
from mempursuit_eval.judged.calls import Request
from mempursuit_eval.judged.client import Chat
from mempursuit_eval.judged.errors import CallFailedError

REQUEST = Request("answer", "m", "Why?", 0.0, 100)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        yield cache


class Watched(dict):
    """Calls on their way; tells when somebody joins one."""

    joined = threading.Event()

    def get(self, key, default=None):
        found = super().get(key, default)
        if found is not None:
            self.joined.set()
        return found


@pytest.mark.parametrize("reply", [says("yes"), refuses(400, "no")], ids=["answered", "failed"])
def test_one_call_serves_all_who_wait_for_it(cache, reply):
    arrived = threading.Event()
    watched = Watched()
    watched.joined.clear()

    def hold(body, n):
        arrived.set()
        watched.joined.wait(20)
        return reply

    with ChatServer(hold) as server, ThreadPoolExecutor() as pool:
        caller = Caller(cache, Chat(server.url))
        caller._on_their_way = watched
        first = pool.submit(caller.ask, REQUEST)
        assert arrived.wait(20)
        second = pool.submit(caller.ask, REQUEST)
        outcomes = [f.exception(20) or f.result() for f in (first, second)]
        assert len(server.requests) == 1
    assert outcomes[0] is outcomes[1]
    assert watched == {}
    if reply.status == 200:
        assert outcomes[0].text == "yes"
        assert (caller.spent.calls, caller.spent.prompt_tokens) == (1, 100)
    else:
        assert isinstance(outcomes[0], CallFailedError)
        assert caller.spent.calls == 0


def test_what_failed_is_not_kept_and_what_came_is(cache):
    script = [refuses(400, "no"), says("yes")]
    with ChatServer(lambda body, n: script[n]) as server:
        caller = Caller(cache, Chat(server.url))
        with pytest.raises(CallFailedError):
            caller.ask(REQUEST)
        assert caller.ask(REQUEST).text == caller.ask(REQUEST).text == "yes"
        assert len(server.requests) == 2
    assert (caller.spent.calls, caller.spent.kept) == (1, 1)
