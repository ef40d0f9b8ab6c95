"""The files a run leaves behind."""

from __future__ import annotations

import json
import platform
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from mempursuit_eval.ranking import has_rivals, leads, ranking_markdown
from mempursuit_eval.results import Metrics
from mempursuit_eval.run import RunResult
from mempursuit_eval.tables import markdown


def write_run(result: RunResult, metrics: Metrics, data: Path, embedder: str) -> None:
    """Write the manifest, memories, questions, selections, metrics and table of a run."""
    out = result.options.out
    out.mkdir(parents=True, exist_ok=True)
    _json(out / "manifest.json", manifest(result, data, embedder))
    _lines(
        out / "memories.jsonl",
        (r.as_row() for r in result.records.values()),
    )
    _lines(
        out / "questions.jsonl",
        (
            {
                "id": q.id,
                "conversation": c.id,
                "category": q.category,
                "text": q.text,
                "answer": q.answer,
                "gold_sessions": sorted(q.gold_sessions),
                "gold_turns": sorted(q.gold_turns),
            }
            for c in result.dataset.conversations
            for q in c.questions
        ),
    )
    _lines(
        out / "selections.jsonl",
        (
            {
                "question": c.question,
                "framework": c.framework,
                "k": c.k,
                "arm": c.arm,
                "ids": c.ids,
                **({"seeds": c.picks} if c.picks != c.ids else {}),
            }
            for c in result.chosen
        ),
    )
    _json(out / "metrics.json", metrics.as_dict())
    table = markdown(result, metrics)
    if has_rivals(result):
        table += ranking_markdown(result, leads(result))
    (out / "table.md").write_text(table, encoding="utf-8")


def manifest(result: RunResult, data: Path, embedder: str) -> dict[str, Any]:
    """Return everything needed to say what the figures were measured with."""
    options = result.options
    return {
        "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "data": {
            "name": result.dataset.name,
            "file": data.name,
            "sha256": result.dataset.sha256,
            "conversations": len(result.dataset.conversations),
            "questions": len(result.dataset.questions),
            "questions_with_gold": sum(bool(q.gold_sessions) for q in result.dataset.questions),
            "memories": len(result.records),
            "categories": result.dataset.categories,
            "conversation_ids": [c.id for c in result.dataset.conversations],
        },
        "encoder": result.encoder,
        "options": {
            "frameworks": options.frameworks,
            "k": options.budgets,
            "memories": options.memories,
            "embedder": embedder,
            "selectors": options.arms,
        },
        "versions": {
            "mempursuit": version("mempursuit"),
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "numba": version("numba"),
        },
        "frameworks": {
            name: {
                "backbone": result.kinds[name],
                "versions": result.versions[name],
                **result.facts.get(name, {}),
                "folder": result.stores[name],
                "pick_ms": {
                    arm: round(median(took), 3)
                    for arm in options.arms
                    if (took := result.pick_ms[name, arm])
                },
            }
            for name in options.frameworks
        },
    }


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _lines(path: Path, values: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
