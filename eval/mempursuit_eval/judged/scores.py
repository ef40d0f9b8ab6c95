"""Scores that need no LLM: LoCoMo's token F1, and whether the gold answer is contained."""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import lru_cache

from nltk.stem.porter import PorterStemmer

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DROPPED = re.compile(r"\b(?:a|an|the|and)\b")
_STEMMER = PorterStemmer()  # the mode LoCoMo uses: NLTK's own extensions of Porter's rules


def normalise(text: str) -> list[str]:
    """Return the words of `text` as LoCoMo compares them: lower case, no punctuation, no articles.

    "and" is dropped like the articles.
    """
    return _DROPPED.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def token_f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of the precision and recall of stemmed words, in 0–1."""
    said, wanted = ([_stem(w) for w in normalise(text)] for text in (answer, gold))
    same = sum((Counter(said) & Counter(wanted)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(said), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def locomo_f1(answer: str, gold: str, category: str) -> float:
    """Return LoCoMo's score of `answer`, in 0–1.

    Multi-hop answers are lists: each comma-separated part of the gold answer takes its best part
    of the answer, and the mean counts. Open-domain gold answers must have been cut at `;` before.
    """
    if category != "multi-hop":
        return token_f1(answer, gold)
    wanted, said = _parts(gold), _parts(answer)
    return sum(max(token_f1(s, w) for s in said) for w in wanted) / len(wanted)


def contains_gold(answer: str, gold: str) -> bool:
    """Return whether every comma-separated part of `gold` stands in `answer`, word for word."""
    said = f" {' '.join(normalise(answer))} "
    wanted = [" ".join(normalise(part)) for part in _parts(gold)]
    return any(wanted) and all(f" {part} " in said for part in wanted if part)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_STEMMER.stem(word))
