"""What models write, read: final answers, verdicts, rubric scores."""

from __future__ import annotations

import pytest

from mempursuit_eval.judged.parsing import (
    Answer,
    Verdict,
    parse_answer,
    parse_rubric_score,
    parse_verdict,
)


@pytest.mark.parametrize(
    ("reply", "score", "how"),
    [
        ('{"label": "CORRECT"}', 1, "JSON"),
        ('{"label": "WRONG"}', 0, "JSON"),
        ('{"Label": "correct."}', 1, "JSON"),
        ('{"reasoning": "same day", "label": "wrong"}', 0, "JSON"),
        ('```json\n{"label": "CORRECT"}\n```', 1, "JSON in a code fence"),
        ('```\n{"label": "WRONG"}\n```', 0, "JSON in a code fence"),
        ('Both mean the 7th. {"label": "CORRECT"}', 1, "JSON amid prose"),
        ('{"label": "WRONG"}\nThe years {differ}.', 0, "JSON amid prose"),
        ('A {"set": 1} first. {"label": "CORRECT"}', 1, "JSON amid prose"),
        ('This is not WRONG. {"label": "CORRECT"}', 1, "JSON amid prose"),
        ('{"result": {"label": "WRONG"}}', 0, "JSON"),
        ("{'label': 'CORRECT'}", 1, "JSON-like text"),
        ('{"label": "CORRECT"', 1, "JSON-like text"),
        ("label: WRONG", 0, "JSON-like text"),
        ("CORRECT", 1, "bare word"),
        ("The days differ.\n**wrong**", 0, "bare word"),
        ("INCORRECT", 0, "bare word"),
        ('{"label": "INCORRECT"}', 0, "JSON"),
        ('<think>{"label": "CORRECT"}?</think>{"label": "WRONG"}', 0, "JSON"),
    ],
)
def test_a_verdict_is_read(reply, score, how):
    assert parse_verdict(reply) == Verdict(score, how)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "empty reply"),
        (" \n", "empty reply"),
        ('<think>{"label": "CORRECT"} I would', "empty reply"),
        ('{"label": "CORRECT"} {"label": "WRONG"}', "both labels"),
        ('{"label": "CORRECT or WRONG"}', "both labels"),
        ("WRONG\nCORRECT", "both labels"),
        ("label: CORRECT or WRONG", "both labels"),
        ("I say CORRECT, not WRONG", "both labels"),
        ("This is not correct", "no label"),
        ("The answer is INCORRECT", "no label"),
        ("It is CORRECT to say so, however", "no label"),
        ('{"label": "NOT CORRECT"}', "no label"),
        ('{"label": "PARTIALLY CORRECT"}', "no label"),
        ('{"label": null}', "no label"),
        ('{"label": true}', "no label"),
        ('{"label": ["CORRECT"]}', "no label"),
        ("[" * 50_000 + "{" * 50_000, "no label"),
    ],
)
def test_a_reply_without_a_label_has_no_score(reply, why):
    assert parse_verdict(reply) == Verdict(None, why)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 1}', 1),
        ('{"score": 0.5}', 0.5),
        ('It is there. {"score": "0.0", "reason": "x"}', 0),
        ("score: 0.5", 0.5),
        ('{"label": "CORRECT"}', 1),
        ('{"score": 0.7}', None),
        ('{"score": 1} {"score": 0}', None),
        ("", None),
        ("I give 1", None),
    ],
)
def test_a_rubric_score_is_read(reply, score):
    assert parse_rubric_score(reply).score == score


@pytest.mark.parametrize(
    ("reply", "answer", "marked"),
    [
        ("1. Scan: two notes.\nANSWER: 7 May 2023", "7 May 2023", True),
        ("ANSWER: a draft\nno, wait\nANSWER: a vase\n", "a vase", True),
        ("ANSWER: tulips,\nroses", "tulips,\nroses", True),
        ("**ANSWER:** a vase", "a vase", True),
        ("**Final Answer: a vase**", "a vase", True),
        ("so.\nAnswer: a vase", "a vase", True),
        ("thus ANSWER: a vase", "a vase", True),
        ("A vase.", "A vase.", False),
        ("The answer: a vase", "The answer: a vase", False),
        ("ANSWER:", "", True),
        ("", "", False),
        ("<think>ANSWER: no</think>ANSWER: yes", "yes", True),
        ("<think>I never finish. ANSWER: no", "", False),
    ],
)
def test_the_final_answer_is_what_follows_the_last_marker(reply, answer, marked):
    assert parse_answer(reply) == Answer(answer, marked)
