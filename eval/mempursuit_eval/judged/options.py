"""What is asked of the answering and judging stages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class JudgeOptions:
    """See `mempursuit-eval run --help`.

    Attributes:
        answerer, judge: model names; without a judge answers get the scores that need no LLM.
        base_url: None: OPENAI_BASE_URL, or OpenAI's own.
        answer_prompt, judge_prompt: None: the shipped templates.
        temperature: of the answerer; the judge's is 0.
        max_tokens: cap of an answer with its reasoning.
        reference_date: shown instead of every question's own.
        limit: how many questions, spread evenly over the data set; None: all.
        dry_run: work out what it would take, and call nothing.
        prices: of a million tokens in and out, to state cost as money too.
    """

    answerer: str
    judge: str | None = None
    base_url: str | None = None
    answer_prompt: Path | None = None
    judge_prompt: Path | None = None
    concurrency: int = 8
    repeats: int = 1
    temperature: float = 0.0
    max_tokens: int = 2048
    reference_date: str | None = None
    limit: int | None = None
    dry_run: bool = False
    prices: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("concurrency", "repeats", "max_tokens", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                option = "--" + name.replace("_", "-")
                raise ValueError(f"{option}: must be a whole number >= 1, got {value}")
        if self.temperature < 0:
            raise ValueError(f"--temperature: must be >= 0, got {self.temperature}")


def judge_options(
    answerer: str | None, judge: str | None, dry_run: bool, prices: str | None, **rest: Any
) -> JudgeOptions | None:
    """Return the options of the command line, or None if no answers are asked for.

    Raises:
        ValueError: an option is out of range, or needs --answerer.
    """
    if not answerer:
        for option, given in (("--judge", judge), ("--dry-run", dry_run)):
            if given:
                raise ValueError(f"{option}: needs --answerer, the model that is to answer")
        return None
    return JudgeOptions(answerer, judge, dry_run=dry_run, prices=parse_prices(prices), **rest)


def parse_prices(text: str | None) -> tuple[float, float] | None:
    """Return `--prices` as numbers.

    Raises:
        ValueError: it is not two numbers.
    """
    if text is None:
        return None
    try:
        price_in, price_out = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--prices: two numbers IN,OUT are wanted, got {text!r}") from None
    return price_in, price_out
