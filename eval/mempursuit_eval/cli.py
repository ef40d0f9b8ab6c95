"""The command `mempursuit-eval`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(
    help="Measure, on the same stores and pools, what MemPursuit changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
download_app = typer.Typer(help="Fetch data sets that may not be shipped.", no_args_is_help=True)
app.add_typer(download_app, name="download")

_out = Console()
_err = Console(stderr=True)


@app.callback()
def _main() -> None:
    """Keep sub-commands even where there is only one."""


@app.command()
def run(
    data: Annotated[
        str, typer.Option(help="A file in LoCoMo's format, or the data set that ships.")
    ] = "bundled",
    frameworks: Annotated[
        str, typer.Option(help="Comma-separated: rag, mem0, mem0-paper, lightmem, …")
    ] = "rag,mem0,mem0-paper,lightmem,simplemem,memorybank",
    k: Annotated[str, typer.Option("--k", help="Budgets, comma-separated.")] = "10,20",
    memories: Annotated[
        str, typer.Option(help="What fills the stores: observations or turns.")
    ] = "observations",
    embedder: Annotated[
        str, typer.Option(help="wordllama, minilm, st:NAME or openai:NAME.")
    ] = "wordllama",
    selectors: Annotated[
        str,
        typer.Option(
            help="Arms, comma-separated: order (the framework's own), paper, auto, mmr:LAMBDA, "
            "dpp:THETA (share of relevance, 0-1), ce:MODEL (a cross-encoder)."
        ),
    ] = "order,paper,auto",
    out: Annotated[Path, typer.Option(help="Folder for stores, figures and the table.")] = Path(
        "runs/default"
    ),
) -> None:
    """Fill one store per framework and conversation, read it by every arm, print the table."""
    from mempursuit_eval.datasets import bundled_path, load_locomo
    from mempursuit_eval.encoders import make_encoder
    from mempursuit_eval.progress import RunProgress
    from mempursuit_eval.ranking import has_rivals, leads, ranking_table
    from mempursuit_eval.results import compute_metrics
    from mempursuit_eval.run import Options
    from mempursuit_eval.run import run as run_all
    from mempursuit_eval.tables import WIDTH, terminal_table
    from mempursuit_eval.writing import write_run

    with _plain_errors():
        path = bundled_path() if data == "bundled" else Path(data)
        options = Options(_words(frameworks), _numbers(k), memories, _words(selectors), out)
        dataset = load_locomo(path)
        encoder = make_encoder(embedder)
        total = len(options.frameworks) * len(dataset.conversations)
        with RunProgress(total, _err) as progress:
            result = run_all(dataset, encoder, options, progress.tick)
        metrics = compute_metrics(result)
        write_run(result, metrics, path, embedder)
    console = _out if _out.is_terminal else Console(width=WIDTH)
    console.print(terminal_table(result, metrics, short=console.width < WIDTH))
    if has_rivals(result):
        console.print(ranking_table(result, leads(result)))
    console.print(f"Written to {out}/: table.md, metrics.json, selections.jsonl, manifest.json")


@download_app.command()
def locomo(
    to: Annotated[Path | None, typer.Option(help="Folder; default: the user's cache.")] = None,
    url: Annotated[str | None, typer.Option(help="Another address of the same file.")] = None,
) -> None:
    """Fetch LoCoMo's official file and check it."""
    from mempursuit_eval.download import LOCOMO_LICENSE, LOCOMO_URL, download_locomo

    with _plain_errors():
        path = download_locomo(to, url or LOCOMO_URL)
    _out.print(LOCOMO_LICENSE)
    _out.print(f"mempursuit-eval run --data {path}", soft_wrap=True)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn errors a user can act on into one line; anything else keeps its traceback."""
    from mempursuit_eval.backbones import BackboneUnavailableError
    from mempursuit_eval.download import DownloadError
    from mempursuit_eval.encoders import EncoderUnavailableError
    from mempursuit_eval.selectors import SelectorUnavailableError

    try:
        yield
    except (
        ValueError,
        BackboneUnavailableError,
        DownloadError,
        EncoderUnavailableError,
        SelectorUnavailableError,
    ) as error:
        _err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        _err.print("stopped; the same command goes on from here", markup=False)
        raise typer.Exit(130) from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(word) for word in _words(text)}))
    except ValueError:
        raise ValueError(f"--k: budgets must be whole numbers, got {text!r}") from None
