"""LongMemEval's own JSON format (Wu et al., 2025): every question brings its own haystack."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mempursuit_eval.datasets.base import Conversation, DataError, Dataset, Question
from mempursuit_eval.datasets.reading import read_json, samples
from mempursuit_eval.records import MemoryRecord

# What the benchmark's own grader grants answers of each kind, in our words.
GUIDANCE = {
    "single-session-user": "",
    "single-session-assistant": "",
    "single-session-preference": (
        "The gold answer describes what a response suited to this user takes into account. The "
        "answer is CORRECT if it recalls the user's personal information rightly and uses it; it "
        "need not cover every point."
    ),
    "temporal-reasoning": (
        "Where the gold answer is a number of days, weeks or months, being off by one is CORRECT."
    ),
    "knowledge-update": (
        "An answer that also mentions outdated information is CORRECT as long as it gives the "
        "updated one as its answer."
    ),
    "multi-session": "",
}
ABSTENTION = (
    "The question cannot be answered from the conversations; the gold answer explains why. The "
    "answer is CORRECT if it recognises that the information asked for is missing or incomplete."
)
_UNANSWERABLE = "_abs"  # ends the id of a question that cannot be answered
SPEAKERS = {"user": "User", "assistant": "Assistant"}


def load_longmemeval(path: Path, name: str | None = None) -> Dataset:
    """Read a file in LongMemEval's format (S, M or oracle): one conversation a question.

    Sessions are numbered by date. Questions that cannot be answered have no gold sessions, as in
    the benchmark's own retrieval figures.

    Raises:
        DataError: the file is missing, is not JSON, or lacks a part; the message says which.
    """
    raw, value = read_json(path)
    conversations = tuple(samples(path, value, "LongMemEval", "question_id", _conversation))
    return Dataset(
        name or path.stem, hashlib.sha256(raw).hexdigest(), tuple(GUIDANCE), conversations
    )


def parse_date(text: str) -> datetime:
    """Read a session's or question's date, e.g. "2023/05/20 (Sat) 02:21".

    Raises:
        DataError: `text` is not such a date.
    """
    # The weekday follows from the date, and reading its name would depend on the locale.
    words = [w for w in text.split() if not w.startswith("(")]
    try:
        return datetime.strptime(
            " ".join(words), "%Y/%m/%d %H:%M" if len(words) > 1 else "%Y/%m/%d"
        )
    except ValueError:
        raise DataError(f'{text!r} is not a date like "2023/05/20 (Sat) 02:21"') from None


def _conversation(sample: dict[str, Any], _: int) -> Conversation:
    name, kind = str(sample["question_id"]), str(sample["question_type"])
    if kind not in GUIDANCE:
        raise DataError(f"question_type {kind!r} is not one of {', '.join(GUIDANCE)}")
    ids = [str(i) for i in sample["haystack_session_ids"]]
    dates = [parse_date(d) for d in sample["haystack_dates"]]
    talks = sample["haystack_sessions"]
    if not len(ids) == len(dates) == len(talks):
        raise DataError(
            f"{len(ids)} haystack_session_ids, {len(dates)} haystack_dates and {len(talks)} "
            "haystack_sessions do not match"
        )
    # The oracle file is not sorted by date.
    order = sorted(range(len(ids)), key=lambda i: dates[i])
    number = {i: n for n, i in enumerate(order, start=1)}
    turns = tuple(record for i in order for record in _turns(name, number[i], dates[i], talks[i]))
    unanswerable = name.endswith(_UNANSWERABLE)
    wanted = {str(i) for i in sample["answer_session_ids"]}
    gold = {number[i] for i, session in enumerate(ids) if session in wanted}
    marked = {
        f"S{number[i]}:{n}"
        for i in order
        for n, turn in enumerate(talks[i], start=1)
        if turn.get("has_answer")
    }
    question = Question(
        name,
        str(sample["question"]),
        str(sample["answer"]),
        kind,
        frozenset() if unanswerable else frozenset(gold),
        frozenset() if unanswerable else frozenset(marked),
        parse_date(sample["question_date"]),
        ABSTENTION if unanswerable else GUIDANCE[kind],
    )
    return Conversation(
        name, (SPEAKERS["user"], SPEAKERS["assistant"]), {"turns": turns}, (question,)
    )


def _turns(
    name: str, session: int, when: datetime, talk: Sequence[dict[str, Any]]
) -> list[MemoryRecord]:
    return [
        MemoryRecord(
            f"{name}/S{session}:{n}",
            f"{speaker}: {turn['content']}",
            speaker,
            session,
            when,
            (f"S{session}:{n}",),
        )
        for n, turn in enumerate(talk, start=1)
        for speaker in [SPEAKERS.get(turn["role"], str(turn["role"]))]
        if str(turn["content"]).strip()  # some official turns are empty
    ]
