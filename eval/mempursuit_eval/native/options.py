"""What is asked of the frameworks' own writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mempursuit_eval.judged.options import parse_prices
from mempursuit_eval.sources import NATIVE


@dataclass(frozen=True)
class WriterOptions:
    """See `mempursuit-eval run --help`.

    Attributes:
        model: writes the memories.
        base_url: None: OPENAI_BASE_URL, or OpenAI's own.
        concurrency: calls at a time, for writers that ask in parallel.
        dry_run: work out what it would take, and call nothing.
        prices: of a million tokens in and out, to state cost as money too.
    """

    model: str
    base_url: str | None = None
    concurrency: int = 8
    dry_run: bool = False
    prices: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"--concurrency: must be a whole number >= 1, got {self.concurrency}")


def writer_options(
    memories: str,
    writer: str | None,
    frameworks: Sequence[str],
    *,
    base_url: str | None,
    concurrency: int,
    dry_run: bool,
    prices: str | None,
) -> WriterOptions | None:
    """Return the options of the command line, or None if no memories are to be written natively.

    Raises:
        ValueError: --memories native and --writer are not given together, or a framework has no
            writer.
    """
    from mempursuit_eval.native.registry import WRITERS

    if memories != NATIVE:
        if writer:
            raise ValueError(f"--writer: writes for --memories {NATIVE}, not for {memories}")
        return None
    if not writer:
        raise ValueError(
            f"--memories {NATIVE}: needs --writer, the model that is to write the memories"
        )
    for name in frameworks:
        if name == "rag":
            raise ValueError(
                f"--frameworks: rag has no writer of its own; with --memories {NATIVE} name "
                f"others, e.g. --frameworks {','.join(WRITERS)}"
            )
    return WriterOptions(writer, base_url, concurrency, dry_run, parse_prices(prices))
