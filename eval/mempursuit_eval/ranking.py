"""Which arm is best, and whether its lead over the next is more than noise."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from statistics import median

from rich import box
from rich.table import Table

from mempursuit_eval.metrics import coverage
from mempursuit_eval.run import RunResult
from mempursuit_eval.selectors import ORDER, PURSUITS
from mempursuit_eval.statistics import Paired, compare_paired
from mempursuit_eval.tables import SHOWN, framework_label, markdown_table

HEAD = ("Framework", "K", "Metric", "Best arm", "Next", "Lead [95 % CI]", "More than noise?")
LEGEND = (
    "Lead: best minus next, in points over the same questions, with a 95 % paired bootstrap "
    "interval that is not corrected for having picked the best of {arms} arms. "
    "Median ms a pick: {speed}."
)


@dataclass(frozen=True)
class Lead:
    """The two best arms of one framework, budget and metric; rates in 0–1.

    `paired` compares the best with the next one; it is None where there is only one arm.
    """

    framework: str
    k: int
    metric: str
    best: str
    best_rate: float
    next: str | None
    next_rate: float | None
    paired: Paired | None

    @property
    def clear(self) -> bool:
        """Whether the interval of the lead lies above zero."""
        return self.paired is not None and self.paired.ci_low > 0


def has_rivals(result: RunResult) -> bool:
    """Say whether the run has arms besides the framework's own order and pursuit."""
    return any(arm not in (ORDER, *PURSUITS) for arm in result.options.arms)


def leads(result: RunResult) -> list[Lead]:
    """Rank the arms of every framework, budget and shown metric; equal rates keep the arms' order.

    Questions without gold evidence are left out; a run without any gives an empty list.
    """
    questions = {q.id: q for q in result.dataset.questions if q.gold_sessions}
    values: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    for c in result.chosen:
        if c.question in questions:
            found = coverage(questions[c.question], c.ids, result.records)
            for metric in SHOWN:
                values[c.framework, c.k, metric, c.arm].append(getattr(found, metric))
    ranked = []
    options = result.options
    for framework, k, metric in product(options.frameworks, options.budgets, SHOWN):
        of = {arm: v for arm in options.arms if (v := values.get((framework, k, metric, arm)))}
        rates = {arm: sum(v) / len(v) for arm, v in of.items()}
        if not rates:
            continue
        best, *others = sorted(rates, key=lambda arm: -rates[arm])
        second = others[0] if others else None
        ranked.append(
            Lead(
                framework,
                k,
                metric,
                best,
                rates[best],
                second,
                None if second is None else rates[second],
                None if second is None else compare_paired(of[second], of[best]),
            )
        )
    return ranked


def ranking_table(result: RunResult, ranked: list[Lead]) -> Table:
    """Return the ranking for a terminal."""
    table = Table(
        title="Which arm is best",
        caption=_legend(result),
        caption_justify="left",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in HEAD:
        table.add_column(name, no_wrap=True, justify="right" if name == "K" else "left")
    for row in _rows(result, ranked):
        table.add_row(*row)
    return table


def ranking_markdown(result: RunResult, ranked: list[Lead]) -> str:
    """Return the ranking as a section of table.md."""
    lines = ["", "## Which arm is best", "", *markdown_table(list(HEAD), _rows(result, ranked))]
    return "\n".join([*lines, "", _legend(result)]) + "\n"


def _rows(result: RunResult, ranked: list[Lead]) -> list[list[str]]:
    rows = []
    for lead in ranked:
        row = [
            framework_label(result, lead.framework),
            str(lead.k),
            SHOWN[lead.metric].removesuffix(" %"),
            f"{lead.best} {100 * lead.best_rate:.1f}",
        ]
        if lead.paired is not None and lead.next_rate is not None:
            row += [
                f"{lead.next} {100 * lead.next_rate:.1f}",
                lead.paired.in_points,
                "yes" if lead.clear else "no",
            ]
        rows.append(row + [""] * (len(HEAD) - len(row)))
    return rows


def _legend(result: RunResult) -> str:
    ms: dict[str, list[float]] = defaultdict(list)
    for (_, arm), took in result.pick_ms.items():
        ms[arm] += took
    speed = ", ".join(f"{arm} {median(took):.2f}" for arm, took in ms.items())
    return LEGEND.format(arms=len(result.options.arms), speed=speed)
