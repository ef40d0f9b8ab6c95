"""The loopback endpoint that frameworks write through: counting, keeping, sampling, failing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from eval.tests.chat_server import USAGE, ChatServer, Reply, refuses, says
from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.caller import Caller
from mempursuit_eval.judged.client import Chat, RetryPolicy
from mempursuit_eval.native.proxy import WriterProxy

KEY = "sk-a-key-no-framework-may-see"
QUICK = RetryPolicy(attempts=3, first=0.001, longest=0.002)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@contextmanager
def proxied(
    folder: Path, script: Callable[[dict[str, Any], int], Reply], concurrency: int = 4
) -> Iterator[tuple[WriterProxy, ChatServer, Caller]]:
    with ChatServer(script) as server, ReplyCache(folder / "replies.sqlite") as cache:
        caller = Caller(cache, Chat(server.url, QUICK, concurrency))
        with WriterProxy(caller, "some", concurrency) as proxy:
            yield proxy, server, caller


def ask(proxy: WriterProxy, text: str = "hello", **more: Any) -> Any:
    """Ask as a framework does: with its own client."""
    with openai.OpenAI(base_url=proxy.url, api_key=proxy.key, max_retries=0) as client:
        return client.chat.completions.create(
            model="m",
            messages=[{"role": "system", "content": "be brief"}, {"role": "user", "content": text}],
            **more,
        )


def test_requests_pass_whole_and_replies_come_back_with_their_tokens(tmp_path):
    with proxied(tmp_path, lambda body, n: says("hi")) as (proxy, server, _):
        done = ask(
            proxy, temperature=0.1, max_tokens=50, top_p=0.2,
            response_format={"type": "json_object"}, extra_body={"enable_thinking": False},
        )  # fmt: skip
        assert server.keys == [f"Bearer {KEY}"], "the server sees the user's key"
        assert proxy.key != KEY, "a framework does not"
    assert done.choices[0].message.content == "hi"
    assert done.usage.total_tokens == 107
    assert server.requests == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
            ],
            "temperature": 0.1, "max_tokens": 50, "top_p": 0.2,
            "response_format": {"type": "json_object"}, "enable_thinking": False,
        }
    ]  # fmt: skip
    ledger = proxy.ledger
    assert (ledger.calls, ledger.prompt_tokens, ledger.completion_tokens) == (1, 100, 7)
    assert not ledger.estimated


def test_tokens_a_server_does_not_tell_are_estimated_and_cut_replies_counted(tmp_path):
    script = lambda body, n: says("x" * 40, usage=None, finish="length")  # noqa: E731
    with proxied(tmp_path, script) as (proxy, _, _):
        ask(proxy, "y" * 31)
    ledger = proxy.ledger
    assert (ledger.prompt_tokens, ledger.completion_tokens) == (10, 10), "8 + 1 + 31 characters / 4"
    assert ledger.estimated
    assert ledger.cut == 1


def test_asking_again_after_a_reply_is_another_sample_and_a_second_run_finds_both(tmp_path):
    with proxied(tmp_path, lambda body, n: says(f"sample {n}")) as (proxy, server, _):
        first = [ask(proxy).choices[0].message.content for _ in range(2)]
        assert len(server.requests) == 2
    assert first == ["sample 0", "sample 1"]
    with proxied(tmp_path, lambda body, n: refuses(500)) as (proxy, server, caller):
        again = [ask(proxy).choices[0].message.content for _ in range(2)]
        assert server.requests == []
    assert again == first
    assert proxy.ledger.calls == 2, "the store took two calls, though this run made none"
    assert (caller.spent.calls, caller.spent.kept) == (0, 2)


def test_asking_again_before_the_reply_shares_one_call(tmp_path):
    go = threading.Event()

    def slowly(body: dict[str, Any], n: int) -> Reply:
        go.wait(10)
        return says(f"sample {n}")

    with proxied(tmp_path, slowly) as (proxy, server, _), ThreadPoolExecutor(2) as pool:
        both = [pool.submit(ask, proxy) for _ in range(2)]
        while proxy.in_flight < 2:
            pass
        go.set()
        assert {b.result().choices[0].message.content for b in both} == {"sample 0"}
        assert len(server.requests) == 1
        assert proxy.ledger.calls == 1
        assert proxy.in_flight == 0


def test_trouble_is_retried_before_the_framework_hears_of_it(tmp_path):
    script = lambda body, n: says("hi") if n == 2 else refuses((429, 500)[n])  # noqa: E731
    with proxied(tmp_path, script) as (proxy, server, _):
        assert ask(proxy).choices[0].message.content == "hi"
        assert len(server.requests) == 3
    assert proxy.failure is None


def test_after_a_call_failed_for_good_nothing_more_is_asked(tmp_path):
    with proxied(tmp_path, lambda body, n: refuses(400, "too long")) as (proxy, server, _):
        with pytest.raises(openai.BadRequestError, match="too long"):
            ask(proxy)
        with pytest.raises(openai.BadRequestError, match="an earlier call failed"):
            ask(proxy, "something else")
        assert len(server.requests) == 1
    assert "too long" in str(proxy.failure)


def test_what_cannot_be_kept_is_a_failure_not_a_silence(tmp_path):
    with proxied(tmp_path, lambda body, n: says("hi")) as (proxy, server, _):
        with pytest.raises(openai.BadRequestError, match="ask without stream"):
            ask(proxy, stream=True)
        assert server.requests == []
    assert "stream" in str(proxy.failure)


def test_nobody_else_can_spend_the_users_key(tmp_path):
    with proxied(tmp_path, lambda body, n: says("hi")) as (proxy, server, _):
        stranger = openai.OpenAI(base_url=proxy.url, api_key=KEY, max_retries=0)
        with stranger, pytest.raises(openai.AuthenticationError):
            stranger.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hello"}]
            )
        client = openai.OpenAI(base_url=proxy.url, api_key=proxy.key, max_retries=0)
        with client, pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="m", input="hello")
        assert server.requests == []
    assert proxy.failure is None


def test_calls_at_a_time_are_bounded(tmp_path):
    barrier = threading.Barrier(2)

    def script(body: dict[str, Any], n: int) -> Reply:
        barrier.wait(10)  # two must come together
        return says(json.dumps(body["messages"][1]), usage=USAGE)

    with proxied(tmp_path, script, concurrency=2) as (proxy, server, _):
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda n: ask(proxy, str(n)), range(6)))
        assert server.peak == 2
    assert proxy.ledger.calls == 6
