"""The command `mempursuit-eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mempursuit_eval.analyses.cli import app as analyse_app
from mempursuit_eval.bench.cli import app as bench_app
from mempursuit_eval.console import err as _err
from mempursuit_eval.console import numbers, plain_errors, words

app = typer.Typer(
    help="Measure, on the same stores and pools, what MemPursuit changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
download_app = typer.Typer(help="Fetch data sets that may not be shipped.", no_args_is_help=True)
app.add_typer(download_app, name="download")
app.add_typer(analyse_app, name="analyse")
app.add_typer(bench_app, name="bench")

JUDGED = "Answers and verdicts"  # heading of its options in --help
WRITTEN = "Memories by the frameworks' own writers"
MODELS = "Calls of models"

_out = Console()


@app.callback()
def _main() -> None:
    """Keep sub-commands even where there is only one."""


@app.command()
def run(
    data: Annotated[
        str,
        typer.Option(
            help="A LoCoMo or LongMemEval file, a folder of BEAM chats, or the data set that ships."
        ),
    ] = "bundled",
    benchmark: Annotated[
        str, typer.Option(help="What --data is: auto, locomo, longmemeval or beam.")
    ] = "auto",
    frameworks: Annotated[
        str, typer.Option(help="Comma-separated: rag, mem0, mem0-paper, lightmem, …")
    ] = "rag,mem0,mem0-paper,lightmem,simplemem,memorybank",
    k: Annotated[str, typer.Option("--k", help="Budgets, comma-separated.")] = "10,20",
    memories: Annotated[
        str,
        typer.Option(
            help="What fills the stores: the data set's observations or turns, or native: what "
            "each framework's own writer makes of the turns with the model --writer."
        ),
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
    writer: Annotated[
        str | None,
        typer.Option(
            help="Model that writes the memories, for --memories native.", rich_help_panel=WRITTEN
        ),
    ] = None,
    answerer: Annotated[
        str | None,
        typer.Option(help="Model that answers from the selected memories.", rich_help_panel=JUDGED),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Model that judges the answers. It may be added by a later run, also at another "
            "--base-url: answers are kept.",
            rich_help_panel=JUDGED,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="OpenAI-compatible endpoint; default: OPENAI_BASE_URL, else OpenAI's. The key "
            "comes from OPENAI_API_KEY.",
            rich_help_panel=MODELS,
        ),
    ] = None,
    answer_prompt: Annotated[
        Path | None,
        typer.Option(
            help="Template with {{ question }}, {{ reference_date }}, {{ memories }}.",
            rich_help_panel=JUDGED,
        ),
    ] = None,
    judge_prompt: Annotated[
        Path | None,
        typer.Option(
            help="Template with {{ question }}, {{ gold_answer }}, {{ generated_answer }}.",
            rich_help_panel=JUDGED,
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Samples of every answer and verdict.", rich_help_panel=JUDGED)
    ] = 1,
    concurrency: Annotated[
        int, typer.Option(help="Calls at a time, at most.", rich_help_panel=MODELS)
    ] = 8,
    temperature: Annotated[
        float, typer.Option(help="Of the answerer; the judge's is 0.", rich_help_panel=JUDGED)
    ] = 0.0,
    max_tokens: Annotated[
        int,
        typer.Option(help="Cap of an answer with its reasoning.", rich_help_panel=JUDGED),
    ] = 2048,
    reference_date: Annotated[
        str | None,
        typer.Option(
            help="Text that stands for now in every question; default: the date of the "
            "conversation's last session, or the question's own.",
            rich_help_panel=JUDGED,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            help="Answer only so many questions, spread evenly over the data set.",
            rich_help_panel=JUDGED,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Select, but call no model: print the calls and tokens it would take.",
            rich_help_panel=MODELS,
        ),
    ] = False,
    prices: Annotated[
        str | None,
        typer.Option(
            help="IN,OUT: price of a million tokens, to show cost as money too.",
            rich_help_panel=MODELS,
        ),
    ] = None,
) -> None:
    """Fill one store per framework and conversation, read it by every arm, print the table.

    With --memories native each framework writes its memories itself, through the model --writer.
    With --answerer a model also answers from what every arm selected, and with --judge a model
    judges the answers; a stopped run goes on where it was.
    """
    from contextlib import ExitStack

    from mempursuit_eval.datasets import bundled_path, load_dataset
    from mempursuit_eval.encoders import make_encoder
    from mempursuit_eval.judged.options import judge_options
    from mempursuit_eval.logs import log_to
    from mempursuit_eval.native.options import writer_options
    from mempursuit_eval.progress import RunProgress
    from mempursuit_eval.ranking import has_rivals, leads, ranking_table
    from mempursuit_eval.results import compute_metrics
    from mempursuit_eval.run import Options
    from mempursuit_eval.run import run as run_all
    from mempursuit_eval.tables import WIDTH, terminal_table
    from mempursuit_eval.writing import write_run

    with plain_errors():
        path = bundled_path() if data == "bundled" else Path(data)
        options = Options(words(frameworks), numbers(k), memories, words(selectors), out)
        writing = writer_options(
            memories,
            writer,
            options.frameworks,
            base_url=base_url,
            concurrency=concurrency,
            dry_run=dry_run,
            prices=prices,
        )
        judging = judge_options(
            answerer=answerer,
            judge=judge,
            base_url=base_url,
            answer_prompt=answer_prompt,
            judge_prompt=judge_prompt,
            repeats=repeats,
            concurrency=concurrency,
            temperature=temperature,
            max_tokens=max_tokens,
            reference_date=reference_date,
            limit=limit,
            dry_run=dry_run and not (writing and answerer is None),
            prices=prices,
        )
        if judging:
            from mempursuit_eval.judged.command import check, judge_run, show_plan
            from mempursuit_eval.report import print_report
            from mempursuit_eval.report.terminal import WIDE

            check(judging)
        dataset = load_dataset(path, benchmark)
        log_to(out)
        encoder = make_encoder(embedder)
        total = len(options.frameworks) * len(dataset.conversations)
        with ExitStack() as stack:
            source = None
            if writing:
                from mempursuit_eval.native.command import (
                    native_memories,
                    show_spent,
                    show_writing_plan,
                )

                source = stack.enter_context(native_memories(writing, options))
                stack.callback(show_spent, source, _err)
                if dry_run:
                    whole = show_writing_plan(source, dataset, encoder, options, _out)
                    if judging and not whole:
                        _out.print("What answers would take shows once the memories are written.")
                    if not whole or not judging:
                        return
            with RunProgress(total, _err) as progress:
                result = run_all(dataset, encoder, options, progress.tick, source)
        if judging and judging.dry_run:
            show_plan(result, judging, _out)
            return
        metrics = compute_metrics(result)
        write_run(result, metrics, path, embedder)
    console = _out if _out.is_terminal else Console(width=WIDTH)
    console.print(terminal_table(result, metrics, short=console.width < WIDTH))
    if has_rivals(result):
        console.print(ranking_table(result, leads(result)))
    console.print(f"Written to {out}/: table.md, metrics.json, selections.jsonl, manifest.json")
    if judging:
        with plain_errors():
            judge_run(result, judging, _err)
            print_report(out, _out if _out.is_terminal else Console(width=WIDE))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run (its --out).")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Write report.md.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write report.csv.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Write report.tex.")] = False,
    html: Annotated[
        bool,
        typer.Option("--html", help="Write report.html: one file, question by question."),
    ] = False,
) -> None:
    """Print a run in the layout of the paper's Table 4 and write it in the forms asked for.

    Without any, Markdown, CSV and LaTeX are written. It needs nothing but the run's own files.
    """
    from mempursuit_eval.html import write_html
    from mempursuit_eval.report import print_report, write_report
    from mempursuit_eval.report.terminal import WIDE

    asked = {"md": markdown, "csv": csv, "tex": latex}
    forms = [form for form, wanted in asked.items() if wanted]
    with plain_errors():
        written = write_report(folder, forms if forms or html else list(asked))
        if html:
            written.append(write_html(folder))
        print_report(folder, _out if _out.is_terminal else Console(width=WIDE))
    _out.print(f"Written: {', '.join(str(path) for path in written)}", soft_wrap=True)


@app.command()
def advise(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR_OR_STORE",
            help="Folder of a run, or of memories.jsonl and questions.jsonl, or a file of memories "
            '(one {"text": …} a line, optionally with id, embedding, session, conversation).',
        ),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(
            help='One {"text": …} a line, optionally with gold (memory ids) or gold_sessions, '
            "embedding, conversation; default: questions.jsonl beside the memories."
        ),
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="Of a run: whose pools are read; default: its first.")
    ] = None,
    k: Annotated[str, typer.Option("--k", help="Budgets, comma-separated.")] = "5,10,20",
    pool: Annotated[int, typer.Option(help="Of a store: candidates a question.")] = 200,
    embedder: Annotated[
        str, typer.Option(help="Of a store without embeddings: wordllama, minilm, st:…, openai:….")
    ] = "wordllama",
) -> None:
    """Say whether to switch pursuit on over your own store, and with which preset."""
    from mempursuit_eval.advise.command import advice_text

    with plain_errors():
        text = advice_text(source, questions, framework, numbers(k), pool, embedder)
    typer.echo(text)


@download_app.command()
def locomo(
    to: Annotated[Path | None, typer.Option(help="Folder; default: the user's cache.")] = None,
    url: Annotated[str | None, typer.Option(help="Another address of the same file.")] = None,
) -> None:
    """Fetch LoCoMo's official file and check it."""
    from mempursuit_eval.download import LOCOMO_LICENSE, LOCOMO_URL, download_locomo

    with plain_errors():
        path = download_locomo(to, url or LOCOMO_URL)
    _out.print(LOCOMO_LICENSE)
    _out.print(f"mempursuit-eval run --data {path}", soft_wrap=True)
