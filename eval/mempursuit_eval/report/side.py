"""What stands beside the accuracy of a judged run: tokens, LLM-free scores, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mempursuit_eval.report.tables import framework_name, is_judged
from mempursuit_eval.results import OVERALL
from mempursuit_eval.saved import SavedRun

Row = dict[str, Any]


@dataclass(frozen=True)
class SideTable:
    """A table of formatted cells with its notes."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def side_tables(run: SavedRun) -> list[SideTable]:
    """Return the tables beside the accuracy, none for a run without answers."""
    if not is_judged(run):
        return []
    rows = run.metrics["judged_rows"]
    overall = [r for r in rows if r["category"] == OVERALL]
    overall.sort(key=lambda r: (r["k"], run.frameworks.index(r["framework"]), _arm(run, r)))
    return [_tokens(run, overall), _scores(run, rows, overall), _oddities(run, overall)]


def _tokens(run: SavedRun, overall: list[Row]) -> SideTable:
    estimated = any(r.get("tokens_estimated") for r in overall)
    return SideTable(
        "Tokens an answer, and accuracy for them",
        (
            "K", "System", "Arm", "Memories", "Context", "Prompt", "Answer", "Judge",
            "Accuracy %", "Points per 1,000 context tokens",
        ),
        tuple(
            (
                *_names(run, r),
                *(
                    _number(r.get(name), places)
                    for name, places in (
                        ("memories", 1), ("context_tokens", 0), ("prompt_tokens", 0),
                        ("completion_tokens", 0), ("verdict_tokens", 0),
                    )
                ),
                _number(_percent(r["accuracy"]), 2),
                _number(_percent(r.get("accuracy_per_1000_context_tokens")), 2),
            )
            for r in overall
        ),
        (
            "Context: the part of the prompt that is memories, by its share of the characters. "
            + (
                "Some counts are estimates (characters / 4): the server gave none."
                if estimated
                else "Counts are the server's own."
            ),
        ),
    )  # fmt: skip


def _scores(run: SavedRun, rows: list[Row], overall: list[Row]) -> SideTable:
    of = {(r["framework"], r["k"], r["arm"], r["category"]): r for r in rows}
    categories = [*run.categories, OVERALL]
    return SideTable(
        "Scores that need no judge",
        ("K", "System", "Arm", *(f"F1 {c}" for c in categories), "Contains gold %"),
        tuple(
            (
                *_names(run, r),
                *(
                    _number(
                        _percent(of.get((r["framework"], r["k"], r["arm"], c), {}).get("token_f1")),
                        2,
                    )
                    for c in categories
                ),
                _number(_percent(r["contains_gold"]), 2),
            )
            for r in overall
        ),
        ("F1: LoCoMo's token F1 in %, stemmed; multi-hop by comma-separated parts.",),
    )


def _oddities(run: SavedRun, overall: list[Row]) -> SideTable:
    kinds = sorted({kind for r in overall for kind in r["unparsed"]})
    forms = sorted({form for r in overall for form in r["verdict_forms"]})
    return SideTable(
        "What went wrong, and how verdicts came",
        (
            "K", "System", "Arm", "Failed calls", *(f"No verdict: {kind}" for kind in kinds),
            "Empty answers", "Answers without marker", "Answers cut off",
            *(f"Verdict as {form}" for form in forms),
        ),
        tuple(
            (
                *_names(run, r),
                str(r["failed"]),
                *(str(r["unparsed"].get(kind, 0)) for kind in kinds),
                str(r["empty_answers"]),
                str(r["unmarked_answers"]),
                str(r["cut_answers"]),
                *(str(r["verdict_forms"].get(form, 0)) for form in forms),
            )
            for r in overall
        ),
        (
            "Failed calls and replies without a verdict are in no rate and in no pair; an empty "
            "answer is wrong without a call; an answer without the marker is judged whole.",
        ),
    )  # fmt: skip


def _names(run: SavedRun, r: Row) -> tuple[str, str, str]:
    return str(r["k"]), framework_name(run, r["framework"]), r["arm"]


def _arm(run: SavedRun, r: Row) -> int:
    return run.arms.index(r["arm"]) if r["arm"] in run.arms else len(run.arms)


def _percent(rate: float | None) -> float | None:
    return None if rate is None else 100 * rate


def _number(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value:,.{places}f}"
