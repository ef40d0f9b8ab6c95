"""What the HTML report carries: figures, texts once, and every choice as small integers."""

from __future__ import annotations

from typing import Any

from mempursuit_core import PRESETS
from mempursuit_eval.html.answers import (
    ACCURACY,
    accuracy_curves,
    accuracy_pairs,
    accuracy_rows,
    answers,
    has_verdicts,
)
from mempursuit_eval.html.categories import paired_by_category
from mempursuit_eval.html.curves import coverage_by_budget
from mempursuit_eval.html.memories import MemoryTable
from mempursuit_eval.html.reads import expanded_contexts, framework_reads
from mempursuit_eval.results import OVERALL
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.tables import NAMES

METRICS = {
    "complete_coverage": "Complete session coverage",
    "session_recall": "Session recall",
    "turn_complete": "Complete turn coverage",
    "turn_recall": "Turn recall",
}


def build_payload(run: SavedRun) -> dict[str, Any]:
    """Return the report's data as a JSON object.

    Memories are listed once, and only those some context or gold evidence needs; everywhere else a
    memory is its index in that list, a question its index in `questions`, and a missing value
    null. `contexts` says what reached the model where that is not the picks in `reads`.
    """
    memories = MemoryTable(run)
    data: dict[str, Any] = {
        "setting": run.setting,
        "written": run.manifest["written"],
        "frameworks": [
            {"name": f, "label": NAMES.get(f, f), "kind": run.manifest["frameworks"][f]["backbone"]}
            for f in run.frameworks
        ],
        "arms": run.arms,
        "pursuits": [arm for arm in run.arms if arm in PRESETS],
        "budgets": run.budgets,
        "categories": run.categories,
        "metrics": METRICS,
        "rows": [r for r in run.metrics["rows"] if r["category"] == OVERALL],
        "paired": run.metrics["paired"],
        "overlap": run.metrics["overlap"],
        "by_category": paired_by_category(run),
        "curves": {f: coverage_by_budget(run, f) for f in run.frameworks},
        "questions": [
            {
                "id": q.id,
                "text": q.text,
                "answer": q.answer,
                "category": run.categories.index(q.category),
                "sessions": sorted(q.gold_sessions),
                "turns": sorted(q.gold_turns),
                "evidence": memories.gold(run.conversation_of[q.id], q),
            }
            for q in run.questions
        ],
        "reads": {f: framework_reads(run, f, memories) for f in run.frameworks},
        "contexts": {
            f: found for f in run.frameworks if (found := expanded_contexts(run, f, memories))
        },
        "answers": {},
        "memories": memories.rows,
    }
    if has_verdicts(run):
        _add_verdicts(data, run)
    return data


def _add_verdicts(data: dict[str, Any], run: SavedRun) -> None:
    overall, by_category = accuracy_pairs(run)
    data["metrics"] = {ACCURACY: "Accuracy", **METRICS}
    data["rows"] = accuracy_rows(run, data["rows"])
    data["paired"] = [*data["paired"], *overall]
    data["by_category"] += by_category
    data["answers"] = answers(run)
    for framework, curves in data["curves"].items():
        curves[ACCURACY] = accuracy_curves(run, framework)
