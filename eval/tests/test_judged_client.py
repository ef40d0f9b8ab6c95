"""Calls against a real HTTP server on loopback: storms, refusals, odd replies, the key."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from eval.tests.chat_server import ChatServer, Reply, refuses, says
from mempursuit_eval.judged.calls import Request
from mempursuit_eval.judged.client import IN_A_ROW, Chat, RetryPolicy, public_address, retry_after
from mempursuit_eval.judged.errors import CallFailedError, EndpointError
from mempursuit_eval.judged.tokens import Usage

KEY = "sk-test-0123456789abcdef"
REQUEST = Request("answer", "m", "Why?", 0.0, 100)
POLICY = RetryPolicy(attempts=4, first=1.0, longest=8.0, patience=60.0)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


class Patient(Chat):
    """A chat that notes its waits instead of waiting."""

    def __init__(self, url: str, policy: RetryPolicy = POLICY, concurrency: int = 1) -> None:
        super().__init__(url, policy, concurrency)
        self.waits: list[float] = []

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        with self._lock:
            self._hold_until -= seconds  # as if the time had passed


def first_then(*replies: Reply, then: str = "yes"):
    return lambda body, n: replies[n] if n < len(replies) else says(then)


def test_a_request_is_one_user_message_with_its_parameters():
    with ChatServer(first_then()) as server:
        reply = Chat(server.url).send(REQUEST)
    assert (reply.text, reply.finish) == ("yes", "stop")
    assert reply.usage == Usage(100, 7, estimated=False)
    (body,) = server.requests
    assert body["messages"] == [{"role": "user", "content": "Why?"}]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0.0, 100)
    assert server.keys == [f"Bearer {KEY}"]


def test_without_usage_tokens_are_estimated_and_marked():
    with ChatServer(lambda body, n: says("yes, indeed", usage=None)) as server:
        assert Chat(server.url).send(REQUEST).usage == Usage(1, 3, estimated=True)


def test_no_content_is_an_empty_reply():
    with ChatServer(lambda body, n: says(None, finish="length")) as server:
        reply = Chat(server.url).send(REQUEST)
    assert (reply.text, reply.finish) == ("", "length")


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry_After": "3"}, 3, 4),
        ({"retry_after_ms": "2500"}, 2.5, 3.5),
        ({}, 0.5, 1),
    ],
)
def test_a_rate_limit_is_waited_for_as_long_as_the_server_asks(headers, low, high):
    with ChatServer(first_then(refuses(429, **headers))) as server:
        chat = Patient(server.url)
        assert chat.send(REQUEST).text == "yes"
    assert len(server.requests) == 2
    assert low <= chat.waits[0] <= high


def test_a_busy_server_holds_up_every_thread():
    with ChatServer(first_then(refuses(429, retry_after="30"))) as server:
        chat = Patient(server.url, RetryPolicy(attempts=1))
        with pytest.raises(CallFailedError):
            chat.send(REQUEST)
        assert chat.waits == []
        chat.send(REQUEST)  # another call, which was told nothing itself
    assert 29 < chat.waits[0] <= 31


@pytest.mark.parametrize("status", [500, 502, 503, 408, 409, 429])
def test_a_storm_is_backed_off_from_with_jitter_and_ends_as_failed(status):
    with ChatServer(lambda body, n: refuses(status, f"storm {n}")) as server:
        chat = Patient(server.url)
        with pytest.raises(CallFailedError, match=rf"HTTP {status}: storm 3 \(tried 4 times\)"):
            chat.send(REQUEST)
    assert len(server.requests) == POLICY.attempts
    for wait, widest in zip(chat.waits, (1, 2, 4), strict=True):
        assert widest / 2 <= wait <= widest


def test_backoff_has_an_upper_bound_and_differs_between_calls():
    with ChatServer(lambda body, n: refuses(500)) as server:
        waits = []
        for _ in range(2):
            chat = Patient(server.url, RetryPolicy(attempts=8, first=1.0, longest=4.0))
            with pytest.raises(CallFailedError):
                chat.send(REQUEST)
            waits.append(chat.waits)
    assert max(max(w) for w in waits) <= 4
    assert waits[0] != waits[1]


def test_a_wait_beyond_patience_fails_at_once():
    with ChatServer(lambda body, n: refuses(429, retry_after="3600")) as server:
        with pytest.raises(CallFailedError, match="asks to wait 3600 s"):
            Patient(server.url).send(REQUEST)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "odd",
    [
        Reply(body=b"<html>gateway</html>", headers={"Content-Type": "text/html"}),
        Reply(body=b'{"choices": [{"mess'),
        Reply(body=b""),
        Reply(body=[]),
        Reply(body={"choices": []}),
        Reply(body={"error": {"message": "overloaded"}}),
        Reply(body={"choices": [{"message": None}]}),
        Reply(body={"choices": [{"message": {"content": {"a": 1}}, "finish_reason": "stop"}]}),
    ],
    ids=["html", "cut JSON", "empty", "list", "no choices", "error in 200", "null", "no text"],
)
def test_a_malformed_reply_is_asked_for_again(odd):
    with ChatServer(first_then(odd)) as server:
        assert Patient(server.url).send(REQUEST).text == "yes"
        assert len(server.requests) == 2


def test_nothing_but_malformed_replies_is_a_failed_call():
    with ChatServer(lambda body, n: Reply(body={"choices": []})) as server:
        with pytest.raises(CallFailedError, match="no chat completion"):
            Patient(server.url).send(REQUEST)
        assert len(server.requests) == POLICY.attempts


def test_a_request_the_server_cannot_take_is_not_repeated():
    with ChatServer(lambda body, n: refuses(400, "context too long")) as server:
        with pytest.raises(CallFailedError, match="HTTP 400: context too long"):
            Patient(server.url).send(REQUEST)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        refuses(401, f"Incorrect API key provided: {KEY}"),
        refuses(403, f"Bearer {KEY} may not"),
        refuses(404, "no such model"),
        refuses(429, "You exceeded your quota", code="insufficient_quota"),
    ],
    ids=["key", "access", "model", "quota"],
)
def test_what_no_call_can_get_past_stops_the_run_without_naming_the_key(refusal):
    with ChatServer(lambda body, n: refusal) as server:
        with pytest.raises(EndpointError) as caught:
            Patient(server.url).send(REQUEST)
        assert len(server.requests) == 1
        assert server.url in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY[3:] not in str(caught.value)


def test_a_server_that_echoes_the_key_does_not_get_it_stored():
    with ChatServer(lambda body, n: says(f"your key is {KEY}!")) as server:
        assert KEY not in Chat(server.url).send(REQUEST).text


def test_a_placeholder_for_a_key_is_not_cut_out_of_answers(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ChatServer(lambda body, n: says("none of them")) as server:
        assert Chat(server.url).send(REQUEST).text == "none of them"


def test_endpoints_of_ones_own_need_no_key_but_openais_does(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with ChatServer(first_then()) as server:
        assert Chat(server.url).send(REQUEST).text == "yes"
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert Chat().send(REQUEST).text == "yes"
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(EndpointError, match="OPENAI_API_KEY is not set"):
        Chat()


def test_newer_models_get_the_parameters_they_take():
    def script(body, n):
        if "max_tokens" in body:
            return refuses(400, "Unsupported parameter: use 'max_completion_tokens' instead.")
        if "temperature" in body:
            return refuses(400, "Unsupported value: 'temperature' does not support 0.0.")
        return says("yes")

    with ChatServer(script) as server:
        chat = Patient(server.url)
        assert chat.send(REQUEST).text == chat.send(REQUEST).text == "yes"
    assert len(server.requests) == 4, "found out once, kept for the next call"
    assert server.requests[-1]["max_completion_tokens"] == 100
    assert chat.waits == []
    assert not chat.dialects["m"].temperature


def test_nothing_listening_is_found_out_soon():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    chat = Patient(f"http://127.0.0.1:{port}/v1", RetryPolicy(attempts=8))
    with pytest.raises(EndpointError, match=f"nothing answers at http://127.0.0.1:{port}/v1"):
        chat.send(REQUEST)
    assert len(chat.waits) == 3


def test_many_failed_calls_in_a_row_stop_the_run():
    with ChatServer(lambda body, n: refuses(400, "broken")) as server:
        chat = Patient(server.url)
        for _ in range(IN_A_ROW - 1):
            with pytest.raises(CallFailedError):
                chat.send(REQUEST)
        with pytest.raises(EndpointError, match=f"{IN_A_ROW} calls in a row failed"):
            chat.send(REQUEST)


def test_one_good_call_ends_a_row():
    with ChatServer(lambda body, n: says("yes") if n == 10 else refuses(400)) as server:
        chat = Patient(server.url)
        for n in range(IN_A_ROW + 5):
            if n == 10:
                chat.send(REQUEST)
                continue
            with pytest.raises(CallFailedError):
                chat.send(REQUEST)


def test_stopping_ends_waits_but_takes_what_is_on_its_way():
    refused, arrived, go = threading.Event(), threading.Event(), threading.Event()

    def script(body, n):
        if n == 0:
            refused.set()
            return refuses(429, retry_after="500")
        arrived.set()
        go.wait(20)
        return says("in time")

    with ChatServer(script) as server, ThreadPoolExecutor() as pool:
        waiting_chat, chat = Chat(server.url), Chat(server.url)
        waiting = pool.submit(waiting_chat.send, REQUEST)
        assert refused.wait(20)
        coming = pool.submit(chat.send, REQUEST)
        assert arrived.wait(20)
        for c in (waiting_chat, chat):
            c.stop()
        with pytest.raises(CallFailedError):
            waiting.result(20)
        go.set()
        assert coming.result(20).text == "in time"
        with pytest.raises(CallFailedError, match="stopped"):
            chat.send(REQUEST)


def test_dates_and_nonsense_in_retry_after():
    soon = datetime.now(timezone.utc) + timedelta(seconds=90)
    assert 80 < retry_after({"retry-after": format_datetime(soon, usegmt=True)}) <= 90
    past = format_datetime(soon - timedelta(days=1), usegmt=True)
    assert retry_after({"retry-after": past}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_addresses_are_written_down_without_secrets():
    assert public_address("https://me:pw@host:8/v1?token=t") == "https://host:8/v1"
    assert public_address("http://127.0.0.1:8000/v1") == "http://127.0.0.1:8000/v1"
