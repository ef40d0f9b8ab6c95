"""`mempursuit-eval analyse`: one command an analysis."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from mempursuit_eval.console import numbers, plain_errors, words

app = typer.Typer(
    help="The paper's analyses on a finished run: a figure and a JSON each.", no_args_is_help=True
)

ALL = "all"

Run = Annotated[Path, typer.Argument(help="Folder of a run (its --out).", metavar="DIR")]
To = Annotated[Path | None, typer.Option(help="Folder to write to; default: DIR/analyses.")]
Formats = Annotated[str, typer.Option(help="Of the figure, comma-separated: svg, png, pdf.")]
Framework = Annotated[
    str | None, typer.Option(help="Whose pools are read; default: the run's first.")
]
Arm = Annotated[str, typer.Option(help="The arm beside the framework's own order.")]


@app.command()
def overlap(folder: Run, arm: Arm = "paper", to: To = None, formats: Formats = "svg") -> None:
    """Selection overlap and coverage without and with (Fig. 3)."""
    from mempursuit_eval.analyses import overlap as analysis

    _write(analysis, folder, to, formats, ALL, arm=arm)


@app.command()
def budgets(
    folder: Run,
    framework: Framework = None,
    arm: Arm = "paper",
    widest: Annotated[int, typer.Option(help="Largest K, and the adaptive stop's cap.")] = 50,
    to: To = None,
    formats: Formats = "svg",
) -> None:
    """Coverage (and accuracy, when judged) over K, with the adaptive stop's star (Fig. 4b)."""
    from mempursuit_eval.analyses import budgets as analysis

    _write(analysis, folder, to, formats, framework, arm=arm, widest=widest)


@app.command()
def advantage(
    folder: Run, framework: Framework = None, to: To = None, formats: Formats = "svg"
) -> None:
    """Residual advantage of gold evidence at matched size (Eq. 28, Fig. 7)."""
    from mempursuit_eval.analyses import advantage as analysis

    _write(analysis, folder, to, formats, framework)


@app.command()
def missing(
    folder: Run, framework: Framework = None, to: To = None, formats: Formats = "svg"
) -> None:
    """Residual preference for missing evidence (Eq. 29, Fig. 8)."""
    from mempursuit_eval.analyses import missing as analysis

    _write(analysis, folder, to, formats, framework)


@app.command()
def encoders(
    folder: Run,
    embedders: Annotated[
        str, typer.Option(help="Comma-separated: wordllama:DIM, minilm, st:NAME, openai:NAME.")
    ] = "wordllama:128,wordllama:64",
    framework: Framework = None,
    arm: Arm = "paper",
    to: To = None,
    formats: Formats = "svg",
) -> None:
    """The same pools through other embeddings (Table 11)."""
    from mempursuit_eval.analyses import encoders as analysis

    _write(analysis, folder, to, formats, framework, arm=arm, embedders=words(embedders))


@app.command()
def mmr(folder: Run, framework: Framework = None, to: To = None, formats: Formats = "svg") -> None:
    """Pursuit against MMR by λ (Table 10)."""
    from mempursuit_eval.analyses import mmr as analysis

    _write(analysis, folder, to, formats, framework)


@app.command()
def latency(
    folder: Run,
    framework: Framework = None,
    k: Annotated[int, typer.Option("--k", help="Memories chosen.")] = 20,
    questions: Annotated[int, typer.Option(help="How many questions are timed.")] = 200,
    cross_encoders: Annotated[
        str,
        typer.Option(help="Models to time too, comma-separated; needs sentence-transformers."),
    ] = "",
    batches: Annotated[str, typer.Option(help="Batch sizes of the models.")] = "1,8,32,128,200",
    to: To = None,
    formats: Formats = "svg",
) -> None:
    """Milliseconds a choice, against cross-encoders by batch size (Tables 12 and 13, Fig. 9)."""
    from mempursuit_eval.analyses import latency as analysis

    with plain_errors():
        sizes = numbers(batches, "--batches: sizes")
    _write(
        analysis, folder, to, formats, framework,
        k=k, questions=questions, models=words(cross_encoders), batches=sizes,
    )  # fmt: skip


def _write(
    analysis: ModuleType,
    folder: Path,
    to: Path | None,
    formats: str,
    framework: str | None,
    **given: Any,
) -> None:
    """Measure, draw and write; `framework` None is the run's first, ALL all of them at once."""
    from mempursuit_eval.analyses.figures import styled, write_analysis
    from mempursuit_eval.saved import load_run

    with plain_errors():
        forms = words(formats)
        unknown = set(forms) - {"svg", "png", "pdf"}
        if unknown:
            raise ValueError(f"--formats: {sorted(unknown)} is not among svg, png, pdf")
        run = load_run(folder)
        if framework != ALL:
            framework = framework or run.frameworks[0]
            if framework not in run.frameworks:
                raise ValueError(f"--framework: {framework!r} is not in this run: {run.frameworks}")
            given["framework"] = framework
        found = analysis.measure(run, **given)
        name = analysis.__name__.rpartition(".")[2]
        written = write_analysis(
            name, found, styled(analysis.draw, found), to or folder / "analyses", forms
        )
    for line in _gist(found):
        typer.echo(line)
    typer.echo("Written: " + ", ".join(map(str, written)))


def _gist(found: dict[str, Any]) -> list[str]:
    """Return the numbers worth a line each; long lists stay in the JSON."""
    lines = []
    for name, value in found.items():
        if name in ("rows", "pursuit_minus_best_mmr"):
            lines += ["  ".join(f"{k}={_short(v)}" for k, v in row.items()) for row in value]
        elif isinstance(value, (str, int, float)) and name != "analysis":
            lines.append(f"{name}: {_short(value)}")
        elif name in ("adaptive", "best_mmr"):
            lines.append(f"{name}: " + ", ".join(f"{k}={_short(v)}" for k, v in value.items()))
    return lines


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
