"""Questions with their pools, from a finished run or from a user's own files.

A user's store is a folder with two JSON Lines files, or two files anywhere:

    memories.jsonl   {"text": …, "id": …, "embedding": […], "session": …, "conversation": …}
    questions.jsonl  {"text": …, "embedding": […], "gold": [memory ids], "conversation": …}

Only `text` is needed. Embeddings come from both files or from an encoder. Gold evidence may be
given as memory ids (`gold`) or as sessions (`gold_sessions`), or not at all. A question sees the
memories of its `conversation`; where no line names one there is one store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempursuit_adapters import Pool
from mempursuit_core.inputs import unit_rows
from mempursuit_eval.datasets import DataError
from mempursuit_eval.encoders import Encoder
from mempursuit_eval.saved import SavedRun, json_lines

MEMORIES, QUESTIONS = "memories.jsonl", "questions.jsonl"

Row = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One question's pool, with what its memories cover of the gold evidence.

    Attributes:
        pool: candidates in native order, all with usable vectors.
        gold: what must be covered (memory ids or sessions); empty if not given.
        covers: (P,) what each candidate covers.
    """

    pool: Pool
    gold: frozenset[Any]
    covers: tuple[Any, ...]

    def recall(self, positions: Sequence[int]) -> float:
        """Return the share of the gold that `positions` cover; needs gold."""
        return len(self.gold & {self.covers[i] for i in positions}) / len(self.gold)


def asked_of_run(run: SavedRun, framework: str) -> Iterator[Asked]:
    """Yield the questions of a run; what counts is session recall."""
    for question, pool in run.pools(framework):
        sessions = tuple(run.records[str(i)].session for i in pool.ids)
        yield Asked(pool, frozenset(question.gold_sessions), sessions)


def asked_of_store(
    memories: Path, questions: Path, pool_size: int, make_encoder: Callable[[], Encoder]
) -> Iterator[Asked]:
    """Yield the questions of a user's own files; native order is the cosine to the question.

    Raises:
        DataError: a file is missing or a line is not as described; the message says which.
    """
    facts, asked = _read(memories), _read(questions)
    if not facts or not asked:
        raise DataError(f"{memories if not facts else questions} has no line")
    ids = [str(row.get("id", n)) for n, row in enumerate(facts)]
    if len(set(ids)) != len(ids):
        raise DataError(f"{memories}: every id must be there once")
    M, Q = _vectors(memories, facts, questions, asked, make_encoder)
    stores: dict[Any, list[int]] = defaultdict(list)
    for n, row in enumerate(facts):
        stores[row.get("conversation")].append(n)
    for n, row in enumerate(asked):
        # Where memories name no conversation, every question sees all of them.
        own = stores[row.get("conversation") if set(stores) != {None} else None]
        if not own:
            raise DataError(
                f"{questions}, line {n + 1}: no memory has conversation {row.get('conversation')!r}"
            )
        order = [own[i] for i in np.argsort(-(M[own] @ Q[n]), kind="stable")[:pool_size]]
        gold, key = _gold(row, f"{questions}, line {n + 1}", facts, ids)
        covers = ids if key == "id" else [row.get("session") for row in facts]
        yield Asked(
            Pool(ids=[ids[i] for i in order], vectors=M[order], query=Q[n]),
            gold,
            tuple(covers[i] for i in order),
        )


def _read(path: Path) -> list[Row]:
    try:
        rows = json_lines(path)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON Lines: {error}") from None
    for n, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise DataError(f'{path}, line {n}: needs an object with a "text"')
    return rows


def _vectors(
    memories: Path,
    facts: list[Row],
    questions: Path,
    asked: list[Row],
    make_encoder: Callable[[], Encoder],
) -> tuple[NDArray[Any], NDArray[Any]]:
    having = {path: {"embedding" in row for row in rows} for path, rows in
              ((memories, facts), (questions, asked))}  # fmt: skip
    if having[memories] == having[questions] == {False}:
        encoder = make_encoder()
        found = [encoder.encode([row["text"] for row in rows]) for rows in (facts, asked)]
    elif having[memories] == having[questions] == {True}:
        try:
            found = [
                np.array([r["embedding"] for r in rows], dtype=float) for rows in (facts, asked)
            ]
        except (TypeError, ValueError) as error:
            raise DataError(f"embeddings must be lists of numbers of one length: {error}") from None
        if found[0].shape[1:] != found[1].shape[1:]:
            raise DataError(
                f"memories and questions must be embedded alike: {found[0].shape[1:]} against "
                f"{found[1].shape[1:]} dimensions"
            )
    else:
        raise DataError(
            f"either every line of {memories} and {questions} has an embedding, or none has"
        )
    try:
        return unit_rows(found[0], "memories"), unit_rows(found[1], "questions")
    except ValueError as error:
        raise DataError(f"an embedding cannot be used: {error} (rows count from 0)") from None


def _gold(row: Row, where: str, facts: list[Row], ids: list[str]) -> tuple[frozenset[Any], str]:
    if row.get("gold"):
        gold, key = frozenset[Any](map(str, row["gold"])), "id"
        known = set[Any](ids)
    else:
        gold, key = frozenset(row.get("gold_sessions") or ()), "session"
        known = {fact.get("session") for fact in facts}
    if gold - known:
        raise DataError(f"{where}: no memory has the {key} {sorted(gold - known)[0]!r}")
    return gold, key
