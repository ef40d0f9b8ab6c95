"""The table a run prints and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich import box
from rich.table import Table

from mempursuit_eval.results import OVERALL, Metrics, Row
from mempursuit_eval.run import RunResult
from mempursuit_eval.selectors import ORDER

NAMES = {
    "rag": "RAG",
    "mem0": "Mem0",
    "mem0-paper": "Mem0 (two stores)",
    "lightmem": "LightMem",
    "simplemem": "SimpleMem",
    "memorybank": "MemoryBank",
}
SHOWN = {"session_recall": "Session recall %", "complete_coverage": "Complete coverage %"}
HEAD = ("Framework", "K", "Arm")
PER_METRIC = ("w/o → w/", "Δ [95 % CI]", "p")
WIDTH = 132  # what the whole table needs; a narrower terminal gets the short one


def framework_label(result: RunResult, framework: str) -> str:
    """Return the framework's name, saying so where a port stands in for the package."""
    port = " (port)" if result.kinds[framework] == "port" else ""
    return NAMES.get(framework, framework) + port


def setting(result: RunResult) -> str:
    """Return one line that says what the figures were measured on."""
    asked = sum(bool(q.gold_sessions) for q in result.dataset.questions)
    return (
        f"{result.dataset.name}: {len(result.dataset.conversations)} conversations, "
        f"{len(result.dataset.questions)} questions ({asked} with gold evidence); "
        f"memories: {result.options.memories}; encoder: {result.encoder}"
    )


def terminal_table(result: RunResult, metrics: Metrics, *, short: bool = False) -> Table:
    """Return the paired table for a terminal; `short` leaves out intervals, p and overlap."""
    table = Table(
        title="Gold evidence that reaches the context, without → with MemPursuit",
        caption=setting(result) + "\n" + LEGEND,
        caption_justify="left",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )
    for column in HEAD:
        table.add_column(column, no_wrap=True, justify="right" if column == "K" else "left")
    for name in SHOWN.values():
        # Two lines, so that the figures below and not the heading set the width.
        table.add_column(name.replace(" ", "\n", 1), no_wrap=True, justify="right")
        table.add_column("Δ" if short else "Δ [95 % CI]", no_wrap=True, justify="right")
        if not short:
            table.add_column("p", no_wrap=True, justify="right")
    if not short:
        table.add_column("Over-\nlap %", no_wrap=True, justify="right")
    previous = None
    for framework, k, arm, cells in _lines(result, metrics):
        if previous is not None and previous != framework:
            table.add_section()
        label = framework_label(result, framework) if previous != framework else ""
        previous = framework
        if short:
            cells = [cells[0], cells[1].split(" ")[0], cells[3], cells[4].split(" ")[0]]
        table.add_row(label, str(k), arm, *cells)
    return table


def markdown(result: RunResult, metrics: Metrics) -> str:
    """Return `table.md`: the paired table, the categories, and the setting."""
    head = [*HEAD, *(f"{name}: {c}" for name in SHOWN.values() for c in PER_METRIC), "Overlap %"]
    lines = ["# Without and with MemPursuit", "", setting(result) + ".", "", LEGEND, ""]
    lines += markdown_table(
        head,
        (
            [framework_label(result, f), str(k), arm, *cells]
            for f, k, arm, cells in _lines(result, metrics)
        ),
    )
    categories = [OVERALL, *result.dataset.categories]
    for metric, name in SHOWN.items():
        lines += ["", f"## {name} by category", ""]
        lines += markdown_table(
            [*HEAD, *(f"{c} (n={_n(metrics, c)})" for c in categories)],
            (
                [
                    framework_label(result, f),
                    str(k),
                    arm,
                    *(_percent(metrics.row(f, k, arm, c)[metric]) for c in categories),
                ]
                for f in result.options.frameworks
                for k in result.options.budgets
                for arm in result.options.arms
            ),
        )
    lines += ["", "## Backbones", ""]
    for f in result.options.frameworks:
        versions = ", ".join(f"{p} {v}" for p, v in result.versions[f].items())
        facts = "; ".join(f"{name}: {_plain(v)}" for name, v in result.facts[f].items())
        lines.append(
            f"- {NAMES.get(f, f)} ({result.kinds[f]}): {versions}" + (f". {facts}" if facts else "")
        )
    return "\n".join(lines) + "\n"


LEGEND = (
    "w/o: the framework's own top K. w/: the arm's K out of the same pool. Δ in points with a "
    "95 % paired bootstrap interval over questions; p: exact McNemar / sign test. "
    "Overlap: share of the K picks both have."
)


def _lines(result: RunResult, metrics: Metrics) -> Iterator[tuple[str, int, str, list[str]]]:
    for framework in result.options.frameworks:
        for k in result.options.budgets:
            for arm in result.options.arms:
                if arm == ORDER and len(result.options.arms) > 1:
                    continue
                cells = [
                    cell
                    for metric in SHOWN
                    for cell in _compared(metrics, framework, k, arm, metric)
                ]
                yield framework, k, arm, [*cells, _overlap(metrics, framework, k, arm)]


def _compared(metrics: Metrics, framework: str, k: int, arm: str, metric: str) -> list[str]:
    without = metrics.row(framework, k, ORDER)[metric]
    with_ = metrics.row(framework, k, arm)[metric]
    if arm == ORDER or with_ is None:
        return [_percent(without), "", ""]
    pair: Row = metrics.pair(framework, k, arm, metric)
    delta, low, high = (100 * pair[name] for name in ("delta", "ci_low", "ci_high"))
    p = pair["p_value"]
    return [
        f"{_percent(without)} → {_percent(with_)}",
        f"{delta:+.1f} [{low:+.1f}, {high:+.1f}]",
        "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0"),
    ]


def _overlap(metrics: Metrics, framework: str, k: int, arm: str) -> str:
    return next(
        (
            f"{100 * row['overlap']:.0f}"
            for row in metrics.overlap
            if (row["framework"], row["k"], row["arm"]) == (framework, k, arm)
        ),
        "",
    )


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({_plain(v)})" for name, v in value.items())
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _n(metrics: Metrics, category: str) -> int:
    return next(int(r["n"]) for r in metrics.rows if r["category"] == category)


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.1f}"


def markdown_table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
