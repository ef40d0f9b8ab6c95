"""LoCoMo's own JSON format (Maharana et al., 2024), and the bundled data set written in it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from mempursuit_eval.datasets.base import Conversation, DataError, Dataset, Question
from mempursuit_eval.datasets.evidence import parse_evidence, turn_id
from mempursuit_eval.datasets.reading import read_json, samples
from mempursuit_eval.records import MemoryRecord

# Published scripts have mislabelled these; this is the paper's numbering.
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
ADVERSARIAL = 5  # questions without an answer; left out, as in the paper

_SESSION = re.compile(r"session_(\d+)")


def bundled_path() -> Path:
    """Return the path of the data set that ships with the package."""
    return Path(str(files("mempursuit_eval") / "data" / "bundled.json"))


def load_locomo(path: Path, name: str | None = None) -> Dataset:
    """Read a file in LoCoMo's format.

    Raises:
        DataError: the file is missing, is not JSON, or lacks a part; the message says which.
    """
    raw, value = read_json(path)
    conversations = tuple(samples(path, value, "LoCoMo", "sample_id", _conversation))
    return Dataset(
        name or path.stem,
        hashlib.sha256(raw).hexdigest(),
        tuple(CATEGORIES.values()),
        conversations,
    )


def parse_when(text: str) -> datetime:
    """Read a session's date, e.g. "1:56 pm on 8 May, 2023".

    Raises:
        DataError: `text` is not such a date.
    """
    try:
        return datetime.strptime(" ".join(text.split()).upper(), "%I:%M %p ON %d %B, %Y")
    except ValueError:
        raise DataError(f'{text!r} is not a session date like "1:56 pm on 8 May, 2023"') from None


def turn_text(turn: dict[str, Any]) -> str:
    """Return a turn as a memory: who, what, and the caption of a shared picture."""
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [shares {caption}]" if caption else "")


def _conversation(sample: dict[str, Any], n: int) -> Conversation:
    name = str(sample.get("sample_id") or f"sample-{n}")
    talk = sample["conversation"]
    sessions = dict(_sessions(talk))
    when = {s: parse_when(talk[f"session_{s}_date_time"]) for s in sessions}
    turns = tuple(
        MemoryRecord(
            f"{name}/{turn_id(s, n)}",
            turn_text(turn),
            str(turn["speaker"]),
            s,
            when[s],
            (turn_id(s, n),),
        )
        for s, talked in sessions.items()
        for turn in talked
        for _, n in parse_evidence(turn["dia_id"])[:1]
    )
    facts = tuple(_observations(sample.get("observation") or {}, name, when))
    known = {e for record in turns for e in record.evidence}
    questions = tuple(
        Question(
            f"{name}/q{n}",
            str(qa["question"]),
            str(qa.get("answer", "")),
            CATEGORIES[int(qa["category"])],
            frozenset(s for s, _ in gold if s in sessions),
            frozenset(turn_id(*g) for g in gold) & known,
        )
        for n, qa in enumerate(sample["qa"])
        if int(qa["category"]) != ADVERSARIAL
        for gold in [parse_evidence(qa.get("evidence"))]
    )
    return Conversation(
        name,
        (str(talk["speaker_a"]), str(talk["speaker_b"])),
        {"observations": facts, "turns": turns},
        questions,
    )


def _sessions(talk: dict[str, Any]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    # Some sessions of the official file have a date and no turns; those hold no memory.
    numbered = ((_SESSION.fullmatch(key), value) for key, value in talk.items())
    found = {int(m.group(1)): value for m, value in numbered if m and isinstance(value, list)}
    yield from sorted(found.items())


def _observations(
    observation: dict[str, Any], name: str, when: dict[int, datetime]
) -> Iterator[MemoryRecord]:
    for key, by_speaker in observation.items():
        match = _SESSION.match(key)
        if match is None or int(match.group(1)) not in when:
            continue
        session, n = int(match.group(1)), 0
        for speaker, stated in by_speaker.items():
            for text, evidence, *_ in stated:
                n += 1
                yield MemoryRecord(
                    f"{name}/D{session}.f{n}",
                    str(text),
                    str(speaker),
                    session,
                    when[session],
                    tuple(turn_id(*e) for e in parse_evidence(evidence)),
                )
