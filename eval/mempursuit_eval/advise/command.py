"""`mempursuit-eval advise`: from its arguments to the printed advice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mempursuit_eval.advise.advice import advise
from mempursuit_eval.advise.asked import MEMORIES, QUESTIONS, asked_of_run, asked_of_store
from mempursuit_eval.advise.text import as_text
from mempursuit_eval.datasets import DataError
from mempursuit_eval.encoders import make_encoder
from mempursuit_eval.saved import load_run


def advice_text(
    source: Path,
    questions: Path | None,
    framework: str | None,
    budgets: Sequence[int],
    pool_size: int,
    embedder: str,
) -> str:
    """Return advice on a run's folder, a store's folder, or a file of memories with `questions`.

    Raises:
        DataError: the source is none of these, or a file is not as described.
    """
    if not budgets or min(budgets) < 1 or pool_size < 1:
        raise ValueError("--k and --pool must be whole numbers, at least 1")
    if (source / "manifest.json").exists():
        run = load_run(source)
        name = framework or run.frameworks[0]
        if name not in run.frameworks:
            raise DataError(
                f"--framework: {name!r} is not in this run: {', '.join(run.frameworks)}"
            )
        return as_text(advise(asked_of_run(run, name), budgets), f"{run.setting}; pools of {name}")
    memories = source / MEMORIES if source.is_dir() else source
    asked_in = questions or memories.with_name(QUESTIONS)
    found = asked_of_store(memories, asked_in, pool_size, lambda: make_encoder(embedder))
    return as_text(advise(found, budgets), f"{memories} and {asked_in}, cosine top {pool_size}")
