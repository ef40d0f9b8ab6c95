"""BEAM's format, on a tiny chat written in it, judged by its rubrics."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.tests.chat_server import ChatServer, says
from mempursuit_eval.cli import app
from mempursuit_eval.datasets import DataError, load_dataset
from mempursuit_eval.datasets.beam import REFERENCE

CHAT = [
    {
        "batch_number": 1,
        "time_anchor": None,
        "turns": [
            [
                {"role": "user", "id": 0, "time_anchor": "March-15-2024", "index": "1,1",
                 "question_type": "main_question",
                 "content": "I start a herb garden today. ->-> 1,1"},
                {"role": "assistant", "id": 1, "content": "Basil likes sun."},
            ],
            [
                {"role": "user", "id": 2, "index": "1,2", "question_type": "main_question",
                 "content": "Always answer in lists, please. ->-> 1,2"},
                {"role": "assistant", "id": 3, "content": "- Will do."},
            ],
        ],
    },
    {
        "batch_number": 2,
        "time_anchor": None,
        "turns": [
            [
                {"role": "user", "id": 4, "time_anchor": "April-02-2024", "index": "2,1",
                 "question_type": "main_question",
                 "content": "I watered the basil and planted mint. ->-> 2,1"},
                {"role": "assistant", "id": 5, "content": "Mint spreads."},
            ],
        ],
    },
]  # fmt: skip

QUESTIONS = {
    "abstention": [
        {"question": "Which soil do I use?", "ideal_response": "The chat does not say.",
         "rubric": ["Says that the chat does not mention the soil"]},
    ],
    "instruction_following": [
        {"question": "What do herbs need?", "expected_compliance": "A list.",
         "source_chat_ids": [2], "rubric": ["The response is a list"]},
    ],
    "temporal_reasoning": [
        {"question": "How many days from start to planting mint?", "answer": "18 days",
         "source_chat_ids": {"first_event": [0], "second_event": [4]},
         "rubric": ["States 18 days", "Names March 15", "Names April 2"]},
    ],
}  # fmt: skip


def write(folder: Path, chat=CHAT, questions=QUESTIONS, name: str = "chat.json") -> Path:
    (folder / "probing_questions").mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(chat), encoding="utf-8")
    (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(questions))
    return folder


def test_a_chat_is_read(tmp_path):
    data = load_dataset(write(tmp_path / "100K" / "1"))
    (talk,) = data.conversations
    assert (data.name, talk.id, data.categories) == ("BEAM 100K/1", "1", tuple(REFERENCE))
    turns = talk.memories["turns"]
    assert turns[0].text == "User: I start a herb garden today.", "bookkeeping is cut off"
    assert [(t.session, t.speaker) for t in turns] == [
        (1, "User"), (1, "Assistant"), (1, "User"), (1, "Assistant"), (2, "User"), (2, "Assistant"),
    ]  # fmt: skip
    assert turns[3].when == datetime(2024, 3, 15)
    assert talk.last_session == datetime(2024, 4, 2)


def test_questions_bring_gold_and_rubrics(tmp_path):
    questions = {q.category: q for q in load_dataset(write(tmp_path / "1")).questions}
    timed = questions["temporal_reasoning"]
    assert (timed.answer, timed.gold_sessions, timed.gold_turns) == ("18 days", {1, 2}, {"0", "4"})
    assert timed.rubric == ("States 18 days", "Names March 15", "Names April 2")
    assert questions["abstention"].gold_sessions == frozenset()
    assert questions["abstention"].answer == "The chat does not say."
    assert questions["instruction_following"].gold_turns == {"2"}


def test_a_folder_of_chats_is_read_in_the_order_of_their_numbers(tmp_path):
    for name in ("10", "9"):
        write(tmp_path / "100K" / name)
    data = load_dataset(tmp_path / "100K")
    assert [c.id for c in data.conversations] == ["9", "10"]
    assert data.name == "BEAM 100K"
    ids = [q.id for q in data.questions]
    assert len(set(ids)) == len(ids)


def test_the_shortened_chat_is_the_one_asked_about(tmp_path):
    folder = write(tmp_path / "1")
    write(folder, CHAT[:1], name="chat_trunecated.json")
    data = load_dataset(folder)
    assert data.conversations[0].last_session == datetime(2024, 3, 15)
    timed = next(q for q in data.questions if q.category == "temporal_reasoning")
    assert timed.gold_turns == {"0"}, "what was cut off is no evidence"


def test_chats_of_several_plans_are_read(tmp_path):
    data = load_dataset(write(tmp_path / "1", [{"plan-1": CHAT[:1]}, {"plan-2": CHAT[1:]}]))
    assert [t.session for t in data.conversations[0].memories["turns"]] == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("chat", "questions", "says_"),
    [
        ([{**CHAT[0], "turns": [CHAT[0]["turns"][1]]}], QUESTIONS, "first batch has no time_anch"),
        ([CHAT[0], CHAT[0]], QUESTIONS, "message ids must be unique"),
        (CHAT, {"abstention": [{"question": "?", "rubric": []}]}, "key 'ideal_response' is miss"),
        ([[1]], QUESTIONS, "not in BEAM's format"),
    ],
)
def test_a_broken_chat_is_named(tmp_path, chat, questions, says_):
    with pytest.raises(DataError, match=says_):
        load_dataset(write(tmp_path / "1", chat, questions))


def test_what_is_no_benchmark_is_named(tmp_path):
    with pytest.raises(DataError, match="holds no BEAM chat"):
        load_dataset(tmp_path)
    other = tmp_path / "other.json"
    other.write_text('[{"text": "x"}]')
    with pytest.raises(DataError, match="in no known format"):
        load_dataset(other)
    other.write_text(json.dumps(CHAT))
    with pytest.raises(DataError, match="pass its folder"):
        load_dataset(other)


def test_answers_are_scored_criterion_by_criterion(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    scores = {"States 18 days": 1, "Names March 15": 0.5, "Names April 2": 0}

    def script(body, n):
        prompt = body["messages"][0]["content"]
        if body["model"] == "answerer":
            return says("ANSWER: 18 days")
        criterion = next((c for c in scores if c in prompt), None)
        return says(json.dumps({"score": scores[criterion]}) if criterion else "It depends.")

    out = tmp_path / "out"
    with ChatServer(script) as server:
        done = CliRunner().invoke(
            app,
            ["run", "--data", str(write(tmp_path / "1")), "--frameworks", "rag", "--k", "6",
             "--memories", "turns", "--selectors", "order", "--out", str(out), "--answerer",
             "answerer", "--judge", "judge", "--base-url", server.url],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        assert len(server.prompts("judge")) == 5, "one call a criterion"
    judged = [json.loads(line) for line in (out / "judged.jsonl").read_text().splitlines()]
    timed = next(j for j in judged if j["category"] == "temporal_reasoning")
    assert (timed["score"], timed["status"], timed["verdict"]) == (0.5, "judged", None)
    assert {j["status"] for j in judged if j is not timed} == {"unparsed"}
    assert "Mean rubric score %" in done.output
