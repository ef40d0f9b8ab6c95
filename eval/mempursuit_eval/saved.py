"""Reading a finished run's folder back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mempursuit_adapters import Pool
from mempursuit_eval.datasets import DataError, Question
from mempursuit_eval.pools import load_pools
from mempursuit_eval.records import MemoryRecord
from mempursuit_eval.run import Chosen, conversation_folder

Cell = tuple[str, int, str]  # framework, budget, arm


@dataclass(frozen=True)
class SavedRun:
    """What `mempursuit-eval run` left in a folder.

    Attributes:
        folder: the folder itself.
        manifest, metrics: the content of manifest.json and metrics.json.
        records: memory id -> memory, in file order.
        questions: in file order.
        chosen: (framework, budget, arm) -> question id -> choice.
    """

    folder: Path
    manifest: dict[str, Any]
    metrics: dict[str, list[dict[str, Any]]]
    records: dict[str, MemoryRecord]
    questions: tuple[Question, ...]
    conversation_of: dict[str, str]
    chosen: dict[Cell, dict[str, Chosen]]

    @property
    def frameworks(self) -> tuple[str, ...]:
        """Names as in --frameworks."""
        return tuple(self.manifest["options"]["frameworks"])

    @property
    def budgets(self) -> tuple[int, ...]:
        """All K, ascending."""
        return tuple(self.manifest["options"]["k"])

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms, the framework's own order first."""
        return tuple(self.manifest["options"]["selectors"])

    @property
    def categories(self) -> tuple[str, ...]:
        """Question categories in the order tables show them."""
        return tuple(self.manifest["data"]["categories"])

    @property
    def setting(self) -> str:
        """One line that says what the figures were measured on."""
        data = self.manifest["data"]
        return (
            f"{data['name']}: {data['conversations']} conversations, {data['questions']} questions "
            f"({data['questions_with_gold']} with gold evidence); "
            f"memories: {self.manifest['options']['memories']}; encoder: {self.manifest['encoder']}"
        )

    def pools(self, framework: str) -> Iterator[tuple[Question, Pool]]:
        """Yield every question with the pool all arms chose from, in file order.

        Raises:
            DataError: the folder no longer has its stores.
        """
        of: dict[str, list[Question]] = {}
        for question in self.questions:
            of.setdefault(self.conversation_of[question.id], []).append(question)
        root = self.folder / self.manifest["frameworks"][framework]["folder"]
        for n, conversation in enumerate(self.manifest["data"]["conversation_ids"]):
            path = root / conversation_folder(n, conversation) / "pools.npz"
            if not path.exists():
                raise DataError(f"{path} is missing; the same `mempursuit-eval run` makes it again")
            yield from zip(of.get(conversation, []), load_pools(path), strict=True)


def load_run(folder: Path) -> SavedRun:
    """Read the folder of a finished run.

    Raises:
        DataError: it holds none, or one written by an older version.
    """
    try:
        manifest = _json(folder / "manifest.json")
        metrics = _json(folder / "metrics.json")
        memories, questions, selections = (
            json_lines(folder / f"{name}.jsonl") for name in ("memories", "questions", "selections")
        )
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} holds no finished run ({Path(error.filename).name} is missing); "
            "`mempursuit-eval run --out DIR` makes one"
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} cannot be read: {error}") from None
    try:
        chosen: dict[Cell, dict[str, Chosen]] = {}
        for row in selections:
            choice = Chosen(
                row["question"],
                row["framework"],
                row["k"],
                row["arm"],
                tuple(row["ids"]),
                tuple(row.get("seeds", row["ids"])),
            )
            cell = (choice.framework, choice.k, choice.arm)
            chosen.setdefault(cell, {})[choice.question] = choice
        return SavedRun(
            folder,
            manifest,
            metrics,
            {m["id"]: MemoryRecord.from_row(m) for m in memories},
            tuple(_question(q) for q in questions),
            {q["id"]: q["conversation"] for q in questions},
            chosen,
        )
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{folder} was written by another version ({error!r}); run it again, stores are reused"
        ) from None


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSON Lines file; only a line feed ends a line, whatever else a text holds."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def _question(row: dict[str, Any]) -> Question:
    return Question(
        row["id"],
        row["text"],
        row["answer"],
        row["category"],
        frozenset(row["gold_sessions"]),
        frozenset(row["gold_turns"]),
    )


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
