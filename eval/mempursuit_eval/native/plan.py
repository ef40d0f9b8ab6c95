"""What writing a run's memories would take, worked out without a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from mempursuit_eval.datasets import Conversation
from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.plan import cost
from mempursuit_eval.native.base import Writer
from mempursuit_eval.native.calls import stage_of
from mempursuit_eval.tables import NAMES


@dataclass(frozen=True)
class WritingPlan:
    """What is left to write for one framework; tokens are estimates."""

    framework: str
    conversations: int
    written: int
    calls: int
    prompt_tokens: int
    completion_tokens: int


def make_plan(
    writer: Writer,
    left: Sequence[Conversation],
    conversations: int,
    model: str,
    cache: ReplyCache,
) -> WritingPlan:
    """Return what it takes to write the conversations `left` of `conversations`.

    Replies seen before tell how long replies are; those of a conversation that was cut short are
    counted again, though they will not be asked again.
    """
    calls = [call for conversation in left for call in writer.plan(conversation)]
    mean = cache.mean_completion(stage_of(writer.framework), model)
    replies = sum(call.completion_tokens for call in calls) if mean is None else mean * len(calls)
    return WritingPlan(
        writer.framework,
        conversations,
        conversations - len(left),
        len(calls),
        sum(call.prompt_tokens for call in calls),
        round(replies),
    )


def plan_table(plans: Sequence[WritingPlan]) -> Table:
    """Return the plans as a table."""
    table = Table(
        title="Writing the memories: an estimate; nothing was called",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("Framework", no_wrap=True)
    for column in ("Conversations\nto write", "Calls", "Tokens in", "Tokens out"):
        table.add_column(column, justify="right", no_wrap=True)
    for plan in plans:
        table.add_row(
            NAMES.get(plan.framework, plan.framework),
            f"{plan.conversations - plan.written} of {plan.conversations}",
            f"{plan.calls:,}",
            f"{plan.prompt_tokens:,}",
            f"{plan.completion_tokens:,}",
        )
    return table


def plan_lines(
    plans: Sequence[WritingPlan],
    facts: Mapping[str, Mapping[str, object]],
    prices: tuple[float, float] | None,
) -> list[str]:
    """Return the sum and what it rests on; `facts` are the writers', by framework."""
    tokens_in = sum(plan.prompt_tokens for plan in plans)
    tokens_out = sum(plan.completion_tokens for plan in plans)
    total = (
        f"together: about {sum(plan.calls for plan in plans):,} calls, {tokens_in:,} tokens in and "
        f"{tokens_out:,} out"
    )
    if prices:
        total += f", {cost(tokens_in, tokens_out, prices)}"
    lines = [
        total,
        "An estimate from each framework's own batching: tokens by characters / 4, replies by "
        "those kept from before or else by a guess.",
    ]
    lines += [
        f"{NAMES.get(name, name)}: {of['estimate']}"
        for name, of in facts.items()
        if "estimate" in of
    ]
    return lines
