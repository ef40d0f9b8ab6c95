"""The files that answers and verdicts add to a run's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mempursuit_eval.judged.caller import Spent
from mempursuit_eval.judged.client import Dialect
from mempursuit_eval.judged.options import JudgeOptions
from mempursuit_eval.judged.stages import JUDGE_TOKENS, Judgement, Prompts

JUDGED = "judged.jsonl"


def write_judged(
    out: Path,
    judgements: Sequence[Judgement],
    summary: Mapping[str, Any],
    about: Mapping[str, Any],
) -> None:
    """Write judged.jsonl, and add `summary` to metrics.json and "judged" to manifest.json.

    The manifest comes last: its "judged" says that the other two are whole and belong together.
    """
    _replace(
        out / JUDGED,
        "".join(
            json.dumps(line, ensure_ascii=False) + "\n" for j in judgements for line in _lines(j)
        ),
    )
    for name, part in (("metrics.json", summary), ("manifest.json", {"judged": about})):
        whole = json.loads((out / name).read_text(encoding="utf-8"))
        whole.update(part)
        _replace(out / name, json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def about_judging(
    options: JudgeOptions,
    prompts: Prompts,
    address: str,
    dialects: Mapping[str, Dialect],
    spent: Spent,
    totals: Sequence[Mapping[str, Any]],
    *,
    rubrics: bool,
) -> dict[str, Any]:
    """Return what the manifest says of the answering and judging stages.

    `spent` is the cost of this run, `totals` of all replies the folder holds.
    """
    plain = {model for model, dialect in dialects.items() if not dialect.temperature}
    return {
        "answerer": options.answerer,
        "judge": options.judge,
        "endpoint": address,
        "scores": "rubrics" if rubrics else "correct or wrong",
        "repeats": options.repeats,
        "limit": options.limit,
        "reference_date": options.reference_date or "each conversation's own",
        "temperature": {
            "answerer": "the model's own" if options.answerer in plain else options.temperature,
            "judge": "the model's own" if options.judge in plain else 0.0,
        },
        "max_tokens": {"answerer": options.max_tokens, "judge": JUDGE_TOKENS},
        "prompts": {
            name: {"name": prompt.name, "sha256": prompt.sha256}
            for name, prompt in vars(prompts).items()
        },
        "last_run": {
            "calls": spent.calls,
            "replies_kept_from_before": spent.kept,
            "prompt_tokens": spent.prompt_tokens,
            "completion_tokens": spent.completion_tokens,
            "tokens_estimated": spent.estimated,
        },
        "all_replies_kept": list(totals),
    }


def _lines(j: Judgement) -> list[dict[str, Any]]:
    label = {1.0: "CORRECT", 0.0: "WRONG"}.get(j.score) if j.score is not None else None
    usage = j.usage
    return [
        {
            "question": j.case.question.id,
            "framework": framework,
            "k": k,
            "arm": arm,
            "repeat": j.case.repeat,
            "category": j.case.question.category,
            "status": j.status,
            "verdict": None if j.case.question.rubric else label,
            "score": j.score,
            "note": j.note,
            "answer": j.answer,
            "marked": j.marked,
            "cut": j.cut,
            "token_f1": j.f1,
            "contains_gold": j.contains,
            "memories": len(j.case.ids),
            "context_tokens": round(j.context_tokens, 1),
            "prompt_tokens": usage.prompt if usage else None,
            "completion_tokens": usage.completion if usage else None,
            "tokens_estimated": usage.estimated if usage else None,
            "verdict_tokens": j.verdict_tokens,
        }
        for framework, k, arm in j.case.cells
    ]


def _replace(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
