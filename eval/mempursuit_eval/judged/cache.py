"""Replies on disk, one small SQLite file a run; every reply is there before the next is asked."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from mempursuit_eval.judged.calls import Reply
from mempursuit_eval.judged.tokens import Usage

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY,
    stage TEXT NOT NULL,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    finish TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL
) WITHOUT ROWID
"""


class CacheError(ValueError):
    """The file of replies cannot be used; the message says what to do."""


class ReplyCache:
    """Replies by the content of their requests; safe for threads and for sudden death.

    Write-ahead logging keeps what was committed when the process is killed; two runs may share a
    file.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, timeout=60, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            with self._db:
                self._db.execute(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise CacheError(
                f"{path} is not usable ({error}); move it away to begin with an empty one"
            ) from error

    def get(self, key: str) -> Reply | None:
        """Return the reply kept under `key`, if any."""
        with self._lock:
            row = self._db.execute(
                "SELECT text, finish, prompt_tokens, completion_tokens, estimated"
                " FROM replies WHERE key = ?",
                (key,),
            ).fetchone()
        if row is None:
            return None
        return Reply(row[0], row[1], Usage(row[2], row[3], bool(row[4])))

    def put(self, key: str, stage: str, model: str, reply: Reply) -> None:
        """Keep `reply`; it is on its way to the disk when this returns."""
        usage = reply.usage
        with self._lock, self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key, stage, model, reply.text, reply.finish,
                    usage.prompt, usage.completion, int(usage.estimated),
                ),
            )  # fmt: skip

    def mean_completion(self, stage: str, model: str) -> float | None:
        """Return the mean length in tokens of the replies kept of one stage, None without any."""
        with self._lock:
            (mean,) = self._db.execute(
                "SELECT AVG(completion_tokens) FROM replies WHERE stage = ? AND model = ?",
                (stage, model),
            ).fetchone()
        return None if mean is None else float(mean)

    def totals(self) -> list[dict[str, Any]]:
        """Return what all kept replies cost, a row a stage and model."""
        names = (
            "stage", "model", "calls", "prompt_tokens", "completion_tokens", "tokens_estimated",
        )  # fmt: skip
        with self._lock:
            rows = self._db.execute(
                "SELECT stage, model, COUNT(*), SUM(prompt_tokens), SUM(completion_tokens),"
                " MAX(estimated) FROM replies GROUP BY stage, model ORDER BY stage, model"
            ).fetchall()
        return [dict(zip(names, (*row[:-1], bool(row[-1])), strict=True)) for row in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
