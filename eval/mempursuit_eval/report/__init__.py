"""The report of a run in the layout of the paper's Table 4, from the run's files alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from mempursuit_eval.report.latex import latex
from mempursuit_eval.report.markdown import markdown
from mempursuit_eval.report.sheet import sheet
from mempursuit_eval.report.side import side_tables
from mempursuit_eval.report.tables import PaperTable, accuracy_table, coverage_tables, is_judged
from mempursuit_eval.report.terminal import show
from mempursuit_eval.saved import SavedRun, load_run

SHIPPED = "shipped:"


def report_tables(run: SavedRun) -> list[PaperTable]:
    """Return the tables of a run: accuracy first, if it was judged, then coverage."""
    accuracy = accuracy_table(run)
    return [*([accuracy] if accuracy else []), *coverage_tables(run)]


def write_report(folder: Path, forms: Sequence[str]) -> list[Path]:
    """Write report.FORM into a run's folder for every form out of md, csv, tex; return the paths.

    Raises:
        DataError: the folder holds no finished run.
    """
    run = load_run(folder)
    tables, said = report_tables(run), setting(run)
    texts = {
        "md": lambda: markdown(said, tables, side_tables(run)),
        "csv": lambda: sheet(tables),
        "tex": lambda: latex(said, tables),
    }
    written = []
    for form in forms:
        path = folder / f"report.{form}"
        path.write_text(texts[form](), encoding="utf-8")
        written.append(path)
    return written


def print_report(folder: Path, console: Console) -> None:
    """Print the tables and findings of a run.

    Raises:
        DataError: the folder holds no finished run.
    """
    run = load_run(folder)
    show(console, setting(run), report_tables(run))


def setting(run: SavedRun) -> list[str]:
    """Return in sentences what the figures were measured with."""
    found = [run.setting + "."]
    if not is_judged(run):
        return found
    about = run.manifest["judged"]
    judge = f"judge: {about['judge']}" if about["judge"] else "no judge"
    limit = f"; {about['limit']} questions, spread evenly" if about["limit"] else ""
    found.append(
        f"Answerer: {about['answerer']}; {judge}; repeats: {about['repeats']}{limit}; "
        f"reference date: {about['reference_date']}."
    )
    if all(prompt["name"].startswith(SHIPPED) for prompt in about["prompts"].values()):
        found.append(
            "The shipped prompts ask for the steps of the paper's in other words; "
            "--answer-prompt and --judge-prompt take the original ones."
        )
    return found
