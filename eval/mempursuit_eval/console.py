"""What the commands share: options of several words, and errors in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

err = Console(stderr=True)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors a user can act on into one line; anything else keeps its traceback."""
    from mempursuit_eval.backbones import BackboneUnavailableError
    from mempursuit_eval.download import DownloadError
    from mempursuit_eval.encoders import EncoderUnavailableError
    from mempursuit_eval.judged.errors import EndpointError
    from mempursuit_eval.selectors import SelectorUnavailableError

    try:
        yield
    except (
        ValueError,
        BackboneUnavailableError,
        DownloadError,
        EncoderUnavailableError,
        EndpointError,
        SelectorUnavailableError,
        OSError,  # a folder that cannot be written, a full disk
    ) as error:
        err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        err.print("stopped; the same command goes on from here", markup=False)
        raise typer.Exit(130) from None


def words(text: str) -> tuple[str, ...]:
    """Return the comma-separated words of an option, each once."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def numbers(text: str, what: str = "--k: budgets") -> tuple[int, ...]:
    """Return the comma-separated whole numbers of an option, ascending.

    Raises:
        ValueError: one is none; the message begins with `what`.
    """
    try:
        return tuple(sorted({int(word) for word in words(text)}))
    except ValueError:
        raise ValueError(f"{what} must be whole numbers, got {text!r}") from None
