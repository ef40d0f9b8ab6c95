"""LongMemEval's format, on a tiny file written in it."""

from __future__ import annotations

import copy
import json
from datetime import datetime

import pytest
from typer.testing import CliRunner

from mempursuit_eval.cli import app
from mempursuit_eval.datasets import DataError, load_dataset
from mempursuit_eval.datasets.longmemeval import ABSTENTION, GUIDANCE, parse_date

TINY = [
    {
        "question_id": "q_trip",
        "question_type": "temporal-reasoning",
        "question": "How many days after the concert did I fly to Lisbon?",
        "answer": 12,
        "question_date": "2023/06/30 (Fri) 23:40",
        # Out of order, as in the oracle file.
        "haystack_dates": ["2023/05/21 (Sun) 08:00", "2023/05/09 (Tue) 14:30",
                           "2023/05/30 (Tue) 06:10"],
        "haystack_session_ids": ["answer_b", "answer_a", "ultrachat_7"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I flew to Lisbon today.", "has_answer": True},
                {"role": "assistant", "content": "Enjoy the trams!", "has_answer": False},
            ],
            [
                {"role": "user", "content": "I need a playlist.", "has_answer": False},
                {"role": "assistant", "content": "What for?", "has_answer": False},
                {"role": "user", "content": "The concert tonight.", "has_answer": True},
                {"role": "assistant", "content": "", "has_answer": False},
            ],
            [{"role": "user", "content": "Explain photosynthesis."}],
        ],
        "answer_session_ids": ["answer_a", "answer_b"],
    },
    {
        "question_id": "q_dog_abs",
        "question_type": "single-session-user",
        "question": "What is my dog called?",
        "answer": "No dog is mentioned; there is a cat.",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_dates": ["2023/05/09 (Tue) 14:30"],
        "haystack_session_ids": ["answer_c_abs"],
        "haystack_sessions": [
            [{"role": "user", "content": "My cat is called Miso.", "has_answer": True}]
        ],
        "answer_session_ids": ["answer_c_abs"],
    },
]  # fmt: skip


def write(path, value=TINY):
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_every_question_is_a_conversation_of_its_own(tmp_path):
    data = load_dataset(write(tmp_path / "longmemeval_s.json"))
    assert data.name == "longmemeval_s"
    assert data.categories == tuple(GUIDANCE)
    trip, dog = data.conversations
    assert (trip.id, dog.id) == ("q_trip", "q_dog_abs")
    (question,) = trip.questions
    assert question.answer == "12", "numbers are text"
    assert question.asked == datetime(2023, 6, 30, 23, 40)
    assert "off by one" in question.guidance


def test_sessions_are_numbered_by_date_and_turns_are_memories(tmp_path):
    trip = load_dataset(write(tmp_path / "s.json")).conversations[0]
    turns = trip.memories["turns"]
    assert [(t.session, t.speaker, t.text) for t in turns] == [
        (1, "User", "User: I need a playlist."),
        (1, "Assistant", "Assistant: What for?"),
        (1, "User", "User: The concert tonight."),
        (2, "User", "User: I flew to Lisbon today."),
        (2, "Assistant", "Assistant: Enjoy the trams!"),
        (3, "User", "User: Explain photosynthesis."),
    ], "an empty turn is no memory"
    assert turns[0].when == datetime(2023, 5, 9, 14, 30)
    assert len({t.id for t in turns}) == len(turns)
    (question,) = trip.questions
    assert question.gold_sessions == {1, 2}
    assert question.gold_turns == {"S1:3", "S2:1"}
    assert {t.evidence[0] for t in turns} >= question.gold_turns


def test_unanswerable_questions_have_no_gold_and_are_judged_as_such(tmp_path):
    (question,) = load_dataset(write(tmp_path / "s.json")).conversations[1].questions
    assert question.gold_sessions == question.gold_turns == frozenset()
    assert question.guidance == ABSTENTION


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda q: q.pop("answer_session_ids"), "sample 0: the key 'answer_session_ids' is miss"),
        (lambda q: q.update(question_type="trivia"), "question_type 'trivia' is not one of"),
        (lambda q: q.update(haystack_dates=["yesterday"] * 3), "'yesterday' is not a date like"),
        (lambda q: q["haystack_dates"].pop(), "3 haystack_session_ids, 2 haystack_dates"),
        (lambda q: q.update(question_id="q_dog_abs"), "question_id must be unique"),
        (lambda q: q.update(haystack_sessions=[1, 2, 3]), "not in LongMemEval's format"),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path, spoil, says):
    samples = copy.deepcopy(TINY)
    spoil(samples[0])
    with pytest.raises(DataError, match=says):
        load_dataset(write(tmp_path / "s.json", samples))


def test_dates_may_lack_weekday_and_time():
    assert parse_date("2023/05/20") == datetime(2023, 5, 20)
    assert parse_date("2023/05/20 02:21") == datetime(2023, 5, 20, 2, 21)


def test_memories_it_does_not_have_are_named(tmp_path):
    done = CliRunner().invoke(
        app, ["run", "--data", str(write(tmp_path / "s.json")), "--out", str(tmp_path / "out"),
              "--frameworks", "rag"],
    )  # fmt: skip
    assert done.exit_code == 2
    assert "no observations" in done.stderr
    assert "--memories: there are turns" in done.stderr


def test_the_run_command_reads_it(tmp_path):
    data = write(tmp_path / "s.json")
    done = CliRunner().invoke(
        app,
        ["run", "--data", str(data), "--frameworks", "rag", "--k", "2", "--memories", "turns",
         "--selectors", "order", "--out", str(tmp_path / "out")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "out" / "metrics.json").read_text())["rows"]
    overall = next(r for r in rows if r["category"] == "overall")
    assert overall["n"] == 1, "the unanswerable question has no gold"
