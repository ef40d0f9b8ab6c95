"""Replies on disk, by content."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mempursuit_eval.judged.cache import CacheError, ReplyCache
from mempursuit_eval.judged.calls import Reply, Request
from mempursuit_eval.judged.tokens import Usage, estimate_tokens

REQUEST = Request("answer", "m", "Why?", 0.0, 100)
REPLY = Reply("because «it» rained", "stop", Usage(10, 3, estimated=True))


def test_what_was_kept_is_there_for_the_next_run(tmp_path):
    path = tmp_path / "new" / "replies.sqlite"
    with ReplyCache(path) as cache:
        assert cache.get(REQUEST.key) is None
        cache.put(REQUEST.key, "answer", "m", REPLY)
        with ReplyCache(path) as other:  # a second run beside it
            assert other.get(REQUEST.key) == REPLY
    with ReplyCache(path) as cache:
        assert cache.get(REQUEST.key) == REPLY


def test_the_key_holds_all_that_may_change_a_reply():
    changes = [
        {"stage": "verdict"}, {"model": "n"}, {"prompt": "How?"}, {"temperature": 0.5},
        {"max_tokens": 101}, {"repeat": 1},
    ]  # fmt: skip
    keys = {replace(REQUEST, **change).key for change in changes} | {REQUEST.key}
    assert len(keys) == len(changes) + 1
    assert replace(REQUEST).key == REQUEST.key


def test_a_file_that_is_no_cache_is_named_and_left_alone(tmp_path):
    path = tmp_path / "replies.sqlite"
    path.write_bytes(b"notes of mine, long enough to be no database" * 9)
    before = path.read_bytes()
    with pytest.raises(CacheError, match=r"replies\.sqlite is not usable"):
        ReplyCache(path)
    assert path.read_bytes() == before


def test_mean_lengths_come_from_the_replies_of_one_stage_and_model(tmp_path):
    with ReplyCache(tmp_path / "r.sqlite") as cache:
        assert cache.mean_completion("answer", "m") is None
        for n, tokens in enumerate((10, 30)):
            cache.put(str(n), "answer", "m", Reply("x", "stop", Usage(1, tokens, estimated=False)))
        cache.put("v", "verdict", "m", Reply("x", "stop", Usage(1, 500, estimated=False)))
        assert cache.mean_completion("answer", "m") == 20


def test_context_tokens_are_the_memories_share_of_the_prompt():
    usage = Usage(prompt=200, completion=5, estimated=False)
    assert usage.context("q" * 60 + "m" * 40, "m" * 40) == 80
    assert estimate_tokens("x" * 9) == 3
