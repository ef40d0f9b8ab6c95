"""Reading replies: final answers, verdicts and rubric scores out of whatever a model wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

# Reasoning models may put their thoughts first; an unclosed block is a reply cut off in them.
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
# "ANSWER:" anywhere, "Answer:" where a line starts; either may be set in bold.
_MARKER = re.compile(
    r"(?:\bANSWER\b|^[ \t>#*_]*(?i:(?:final[ \t]+)?answer)\b)[*_]*[ \t]*:[*_]*", re.MULTILINE
)
_FENCE = re.compile(r"```[a-zA-Z]*\n?|```")
_LOOSE = re.compile(r"[\"'“”]?\blabel\b[\"'“”]?\s*[:=]\s*[\"'“”*]*([A-Za-z]+)", re.IGNORECASE)
_LOOSE_SCORE = re.compile(r"[\"'“”]?\bscore\b[\"'“”]?\s*[:=]\s*[\"'“”*]*(\d*\.?\d+)", re.IGNORECASE)
_WORDS = re.compile(r"\b(?:CORRECT|INCORRECT|WRONG)\b")
_LABELS = {"CORRECT": 1.0, "WRONG": 0.0, "INCORRECT": 0.0}
_SCORES = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Answer:
    """A final answer; `marked` is whether the reply had the marker before it."""

    text: str
    marked: bool


@dataclass(frozen=True)
class Verdict:
    """A judge's reply, read.

    Attributes:
        score: 1 for CORRECT, 0 for WRONG, for rubrics also 0.5; None: the reply says neither.
        how: for a score, the form it came in ("JSON", "JSON in a code fence", "JSON amid prose",
            "JSON-like text", "bare word"); otherwise why there is none ("empty reply", "both
            labels", "no label").
    """

    score: float | None
    how: str


def parse_answer(reply: str) -> Answer:
    """Return the text after the last marker, or the whole reply if it has none."""
    said = _THOUGHTS.sub("", reply)
    markers = list(_MARKER.finditer(said))
    text = said[markers[-1].end() :] if markers else said
    return Answer(text.strip().strip("*").strip(), bool(markers))


def parse_verdict(reply: str) -> Verdict:
    """Read a reply that should end in {"label": "CORRECT"} or {"label": "WRONG"}.

    A word counts only where it is the label: "not correct" or "INCORRECT" is never CORRECT.
    """
    return _parse(reply, "label", _label, _LOOSE)


def parse_rubric_score(reply: str) -> Verdict:
    """Read a reply that should end in {"score": 0}, {"score": 0.5} or {"score": 1}."""
    found = _parse(reply, "score", _score, _LOOSE_SCORE)
    # Judges told to label do so at times even where a score is asked for.
    return found if found.score is not None or found.how == "both labels" else parse_verdict(reply)


def _parse(
    reply: str, key: str, read: Callable[[Any], set[float]], loose: re.Pattern[str]
) -> Verdict:
    said = _THOUGHTS.sub("", reply).strip()
    if not said:
        return Verdict(None, "empty reply")
    values, how = [o[key] for o in _objects(said) if key in o], _form(said)
    if not values:
        # Outside of JSON a label must stand alone: every other mention of one counts against it.
        words = _WORDS.findall(said) if key == "label" else []
        values, how = [*loose.findall(said), *words], "JSON-like text"
        if not loose.search(said):
            values, how = [*words, said.splitlines()[-1].strip("\"'`*. ")], "bare word"
    scores = [read(value) for value in values]
    known = set[float]().union(*scores)
    if len(known) == 1 and all(scores):
        return Verdict(known.pop(), how)
    return Verdict(None, "both labels" if len(known) > 1 else "no label")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield every JSON object in `text`, nested ones too, with keys in lower case."""
    decoder = json.JSONDecoder()
    at = -1
    while (at := text.find("{", at + 1)) >= 0:
        try:
            value, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        yield {str(k).lower(): v for k, v in value.items()}


def _form(text: str) -> str:
    bare = _FENCE.sub("", text).strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return "JSON amid prose"
    return "JSON" if bare == text else "JSON in a code fence"


def _label(value: Any) -> set[float]:
    """Return the score of a label; a text with both words has both, any other none."""
    text = str(value).strip().strip("\"'*.").upper()
    if text in _LABELS:
        return {_LABELS[text]}
    found = {_LABELS[word] for word in _WORDS.findall(text)}
    return found if len(found) > 1 else set()


def _score(value: Any) -> set[float]:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return set()
    return {number} if number in _SCORES else set()
