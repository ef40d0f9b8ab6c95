"""What a run would ask and cost, worked out without a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich.table import Table

from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.calls import Request
from mempursuit_eval.judged.options import JudgeOptions
from mempursuit_eval.judged.parsing import parse_answer
from mempursuit_eval.judged.stages import Case, Cell, Stages
from mempursuit_eval.judged.tokens import CHARACTERS_PER_TOKEN, estimate_tokens
from mempursuit_eval.selectors import ORDER

# Lengths of replies not seen yet, in tokens; the mean of the kept ones takes their place.
ANSWER_REPLY = 350
VERDICT_REPLY = 60
FINAL_ANSWER = 25  # the part of an answer that the judge reads


@dataclass
class Count:
    """Calls and tokens of one stage."""

    calls: int = 0
    kept: int = 0  # replies that are on the disk already
    prompt_tokens: int = 0
    completion_tokens: float = 0.0

    def add(self, request: Request, completion: float) -> None:
        """Count a call that has to be made."""
        self.calls += 1
        self.prompt_tokens += estimate_tokens(request.prompt)
        self.completion_tokens += completion


@dataclass
class CellPlan:
    """One row of the plan; a context that several rows share is counted in the first of them."""

    contexts: int = 0
    new: int = 0
    shared: int = 0
    kept: int = 0
    context_tokens: int = 0  # all contexts together


@dataclass
class Plan:
    """The estimate for a run."""

    cells: dict[Cell, CellPlan] = field(default_factory=dict)
    answers: Count = field(default_factory=Count)
    verdicts: Count = field(default_factory=Count)


def make_plan(
    stages: Stages, cases: Sequence[Case], options: JudgeOptions, cache: ReplyCache
) -> Plan:
    """Return what is left to ask for `cases`.

    Verdicts on answers not given yet are counted in full; where arms come to the same answer there
    will be fewer.
    """
    answer_reply = cache.mean_completion("answer", options.answerer) or ANSWER_REPLY
    verdict_reply = cache.mean_completion("verdict", options.judge or "") or VERDICT_REPLY
    stand_in = "x" * (FINAL_ANSWER * CHARACTERS_PER_TOKEN)
    plan = Plan()
    seen: set[str] = set()
    for case in cases:
        request = stages.answer_request(case)
        reply = cache.get(request.key)
        first = request.key not in seen
        seen.add(request.key)
        tokens = estimate_tokens(stages.memories(case))
        for n, cell in enumerate(case.cells):
            row = plan.cells.setdefault(cell, CellPlan())
            row.contexts += 1
            row.context_tokens += tokens
            row.kept += reply is not None
            row.new += reply is None and first and n == 0
            row.shared += reply is None and not (first and n == 0)
        if reply is None:
            if first:
                plan.answers.add(request, answer_reply)
                for verdict in stages.verdict_requests(case, stand_in):
                    plan.verdicts.add(verdict, verdict_reply)
            continue
        plan.answers.kept += first
        answer = parse_answer(reply.text).text
        for verdict in stages.verdict_requests(case, answer) if answer else ():
            if verdict.key in seen:
                continue
            seen.add(verdict.key)
            if cache.get(verdict.key) is None:
                plan.verdicts.add(verdict, verdict_reply)
            else:
                plan.verdicts.kept += 1
    return plan


def plan_table(plan: Plan, labels: dict[str, str]) -> Table:
    """Return the plan for a terminal, one row a framework, budget and arm.

    `labels` are the frameworks' names for readers, in the order they were run.
    """
    order = list(labels)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Contexts to answer from")
    table.add_column("Framework", no_wrap=True)
    table.add_column("Arm")
    for name in ("K", "Contexts", "New", "Shared", "Kept", "Tokens a context"):
        table.add_column(name, justify="right")
    for framework, k, arm in sorted(
        plan.cells, key=lambda cell: (order.index(cell[0]), cell[1], cell[2] != ORDER, cell[2])
    ):
        row = plan.cells[framework, k, arm]
        table.add_row(
            labels[framework],
            arm,
            str(k),
            f"{row.contexts:,}",
            f"{row.new:,}",
            f"{row.shared:,}",
            f"{row.kept:,}",
            f"{row.context_tokens / row.contexts:,.0f}",
        )
    return table


def plan_lines(plan: Plan, options: JudgeOptions) -> list[str]:
    """Return the totals as lines of text."""
    lines = []
    for name, model, count in (
        ("answers", options.answerer, plan.answers),
        ("verdicts", options.judge, plan.verdicts),
    ):
        if model is None:
            continue
        most = "up to " if name == "verdicts" and plan.answers.calls else ""
        lines.append(
            f"{name} by {model}: {most}{count.calls:,} calls ({count.kept:,} kept from before), "
            f"about {count.prompt_tokens:,} tokens in and {count.completion_tokens:,.0f} out"
        )
    tokens_in = plan.answers.prompt_tokens + plan.verdicts.prompt_tokens
    tokens_out = plan.answers.completion_tokens + plan.verdicts.completion_tokens
    total = (
        f"together: {plan.answers.calls + plan.verdicts.calls:,} calls, "
        f"about {tokens_in:,} tokens in and {tokens_out:,.0f} out"
    )
    if options.prices:
        total += f", {cost(tokens_in, tokens_out, options.prices)}"
    lines.append(total)
    lines.append(
        "Tokens are estimated by characters / 4. Shared: the same memories as in another row, "
        "answered once. Kept: answered by an earlier run."
    )
    return lines


def cost(tokens_in: float, tokens_out: float, prices: tuple[float, float]) -> str:
    """Return a sum of money for tokens at `prices` per million in and out."""
    return f"about {(tokens_in * prices[0] + tokens_out * prices[1]) / 1e6:,.2f} at --prices"
