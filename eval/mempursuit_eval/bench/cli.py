"""`mempursuit-eval bench`: one command a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mempursuit_eval.console import err, plain_errors, words

if TYPE_CHECKING:
    from mempursuit_eval.bench.frameworks import Options
    from mempursuit_eval.bench.report import Report
    from mempursuit_eval.encoders import Encoder

app = typer.Typer(
    help="How long the pursuit takes, and what it adds to each framework's own search.",
    no_args_is_help=True,
)

WIDTH = 132  # of what is printed where there is no terminal

Memories = Annotated[int, typer.Option(help="Memories in the store.", min=1)]
Dimension = Annotated[
    int | None,
    typer.Option(help="Lifts the vectors isometrically; default: the encoder's own dimension."),
]
K = Annotated[int, typer.Option("--k", help="The budget.", min=1)]
Preset = Annotated[str, typer.Option(help="The dials: paper or auto.")]
Questions = Annotated[int, typer.Option(help="Questions asked, at most 99.", min=1)]
Rounds = Annotated[int, typer.Option(help="How often each is asked.", min=1)]
Embedder = Annotated[str, typer.Option(help="wordllama, minilm, st:NAME or openai:NAME.")]
Out = Annotated[Path, typer.Option(help="Folder for the JSON and the Markdown.")]

Tick = Callable[[str, int, int], None]  # what is measured, searches done, searches in all
Bench = Callable[["Encoder", "Options", Tick], "Report"]


@app.command()
def select(
    data: Annotated[
        Path | None,
        typer.Option(help="A LoCoMo file whose turns make the pools; default: synthetic clusters."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few cells and rounds, to see that it runs.")
    ] = False,
    out: Out = Path("runs/bench"),
) -> None:
    """The selection alone: the paper's grid, its growth, rivals, cold start and threads."""

    def bench(tick: Tick) -> Report:
        from mempursuit_eval.bench.select import run_select_bench

        return run_select_bench(data=data, quick=quick, tick=tick)

    with plain_errors():
        _measure(bench, out)


def _add(framework: str, what: str) -> None:
    """Add the command of one framework."""

    @app.command(framework, help=f"{what}, without and with MemPursuit.")
    def command(
        memories: Memories = 5000,
        dimension: Dimension = None,
        k: K = 10,
        preset: Preset = "paper",
        questions: Questions = 99,
        rounds: Rounds = 3,
        embedder: Embedder = "wordllama",
        out: Out = Path("runs/bench"),
    ) -> None:
        def bench(encoder: Encoder, options: Options, tick: Tick) -> Report:
            from mempursuit_eval.bench.frameworks import bench_framework

            return bench_framework(framework, encoder, options, partial(tick, framework))

        _run(bench, embedder, out, memories, dimension, k, preset, questions, rounds)


_add("lightmem", "LightMem's retrieve")
_add("simplemem", "SimpleMem's retrieve")
_add("memorybank", "MemoryBank's search")


@app.command()
def mem0(
    memories: Memories = 5000,
    dimension: Dimension = None,
    k: K = 10,
    preset: Preset = "paper",
    questions: Questions = 99,
    rounds: Rounds = 3,
    embedder: Embedder = "wordllama",
    stores: Annotated[
        str, typer.Option(help="Comma-separated; those not installed are left out.")
    ] = "qdrant,faiss,chroma,pgvector",
    out: Out = Path("runs/bench"),
) -> None:
    """Mem0's search on each of its vector stores, without and with MemPursuit."""

    def bench(encoder: Encoder, options: Options, tick: Tick) -> Report:
        from mempursuit_eval.bench.mem0 import run_mem0_bench

        return run_mem0_bench(encoder, options, words(stores), tick)

    _run(bench, embedder, out, memories, dimension, k, preset, questions, rounds)


def _run(
    bench: Bench,
    embedder: str,
    out: Path,
    memories: int,
    dimension: int | None,
    k: int,
    preset: str,
    questions: int,
    rounds: int,
) -> None:
    """Measure a framework's search, print and write."""
    with plain_errors():
        from mempursuit_eval.bench.frameworks import Options
        from mempursuit_eval.encoders import make_encoder

        encoder = make_encoder(embedder)
        options = Options(memories, dimension or encoder.dimension, k, preset, questions, rounds)
        _measure(lambda tick: bench(encoder, options, tick), out)


def _measure(bench: Callable[[Tick], Report], out: Path) -> None:
    """Run a benchmark under a progress bar, print its report and write it into `out`."""
    from mempursuit_eval.logs import log_to

    log_to(out)
    with _progress() as progress:
        bar = progress.add_task("getting ready", total=None)

        def tick(what: str, done: int, total: int) -> None:
            progress.update(bar, description=what, completed=done, total=total)

        report = bench(tick)
    paths = report.write(out)
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    report.show(console)
    console.print(f"Written: {', '.join(map(str, paths))}", soft_wrap=True)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
