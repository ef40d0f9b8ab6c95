"""BEAM's own folders (Tavakoli et al., 2026): a chat, its probing questions and their rubrics.

An answer's score is the mean over its rubric's criteria, each 0, 0.5 or 1. The benchmark's own
script differs in two points: it cuts 0.5 down to 0, and scores event ordering by Kendall's tau.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from mempursuit_eval.datasets.base import Conversation, DataError, Dataset, Question
from mempursuit_eval.datasets.reading import read_json, samples
from mempursuit_eval.records import MemoryRecord

# Question type -> the key that holds its reference answer.
REFERENCE = {
    "abstention": "ideal_response",
    "contradiction_resolution": "ideal_answer",
    "event_ordering": "answer",
    "information_extraction": "answer",
    "instruction_following": "expected_compliance",
    "knowledge_update": "answer",
    "multi_session_reasoning": "answer",
    "preference_following": "expected_compliance",
    "summarization": "ideal_summary",
    "temporal_reasoning": "answer",
}
QUESTIONS = Path("probing_questions") / "probing_questions.json"
# The benchmark asks about the shortened chat where there is one; the spelling is the files' own.
CHATS = ("chat_trunecated.json", "chat.json")
SPEAKERS = {"user": "User", "assistant": "Assistant"}

_MARK = re.compile(r"\s*->->\s*[\d\s,]*$")  # bookkeeping of the generator after a user's message


def load_beam(path: Path, name: str | None = None) -> Dataset:
    """Read BEAM chats: `path` is one chat's folder or a folder of such, e.g. "chats/100K".

    A session is a batch of the chat; memories are its messages.

    Raises:
        DataError: a file is missing, is not JSON, or lacks a part; the message says which.
    """
    folders = [path] if (path / QUESTIONS).exists() else sorted(_chats(path), key=_number)
    if not folders:
        raise DataError(f"--data: {path} holds no BEAM chat (a folder with {QUESTIONS})")
    digest = hashlib.sha256()
    read = []
    for folder in folders:
        chat_file = next((folder / c for c in CHATS if (folder / c).exists()), folder / CHATS[-1])
        raw, chat = read_json(chat_file)
        raw_questions, questions = read_json(folder / QUESTIONS)
        for part in (raw, raw_questions):
            digest.update(hashlib.sha256(part).digest())
        read.append({"name": folder.name, "chat": chat, "questions": questions})
    conversations = tuple(samples(path, read, "BEAM", "folder", _conversation))
    title = f"BEAM {path.name}" if folders != [path] else f"BEAM {path.parent.name}/{path.name}"
    return Dataset(name or title, digest.hexdigest(), tuple(REFERENCE), conversations)


def parse_anchor(text: str) -> datetime:
    """Read a batch's date, e.g. "March-15-2024".

    Raises:
        DataError: `text` is not such a date.
    """
    try:
        return datetime.strptime(text.strip(), "%B-%d-%Y")
    except ValueError:
        raise DataError(f'{text!r} is not a time anchor like "March-15-2024"') from None


def _conversation(sample: dict[str, Any], _: int) -> Conversation:
    name = str(sample["name"])
    turns: list[MemoryRecord] = []
    when: datetime | None = None
    for session, batch in enumerate(_batches(sample["chat"]), start=1):
        messages = [m for turn in batch["turns"] for m in turn]
        anchor = next((m["time_anchor"] for m in messages if m.get("time_anchor")), None)
        if anchor is not None:
            when = parse_anchor(anchor)
        if when is None:
            raise DataError("the first batch has no time_anchor")
        turns += [
            MemoryRecord(
                f"{name}/m{message['id']}",
                f"{speaker}: {_MARK.sub('', message['content'])}",
                speaker,
                session,
                when,
                (str(message["id"]),),
            )
            for message in messages
            for speaker in [SPEAKERS.get(message["role"], str(message["role"]))]
        ]
    session_of = {record.evidence[0]: record.session for record in turns}
    if len(session_of) < len(turns):
        raise DataError("message ids must be unique in a chat")
    questions = tuple(
        Question(
            f"{name}/{kind}-{n}",
            str(asked["question"]),
            str(asked[REFERENCE[kind]]),
            kind,
            frozenset(s for i in gold if (s := session_of[i]) is not None),
            frozenset(gold),
            rubric=tuple(str(item) for item in asked["rubric"]),
        )
        for kind in REFERENCE
        for n, asked in enumerate(sample["questions"].get(kind, []))
        for gold in [[i for i in _ids(asked.get("source_chat_ids")) if i in session_of]]
    )
    return Conversation(
        name, (SPEAKERS["user"], SPEAKERS["assistant"]), {"turns": tuple(turns)}, questions
    )


def _batches(chat: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    # The 10M chats are lists of plans, {"plan-1": [batches]}, with ids that run on.
    for part in chat:
        if "turns" in part:
            yield part
        else:
            for plan in part.values():
                yield from plan or ()


def _ids(value: Any) -> Iterator[str]:
    """Yield message ids out of a list, or a dictionary of lists such as first/second_event."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _ids(part)
    elif value is not None:
        yield str(value)


def _chats(path: Path) -> Iterator[Path]:
    return (p.parent.parent for p in path.glob(f"*/{QUESTIONS.as_posix()}"))


def _number(folder: Path) -> tuple[int, str]:
    return (int(folder.name) if folder.name.isdigit() else -1, folder.name)
