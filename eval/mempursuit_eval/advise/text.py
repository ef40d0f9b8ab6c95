"""Advice in a few lines."""

from __future__ import annotations

from textwrap import wrap

from mempursuit_core import PRESETS
from mempursuit_eval.advise.advice import Advice

WIDTH = 100


def as_text(advice: Advice, what: str) -> str:
    """Return the advice; `what` says what was read."""
    g = advice.geometry
    verb = "switch it on with" if advice.with_gold else "try"
    on = f'{verb} preset="{advice.preset}"' if advice.preset else "leave it off"
    gold = f"{advice.with_gold} with" if advice.with_gold else "none with"
    lines = [
        *_wrapped(f"Read: {what}. {advice.questions} questions, {gold} gold evidence."),
        "",
        *_wrapped(f"Advice: {on}: {advice.why}"),
        *(line for caution in advice.cautions for line in _wrapped(caution)),
        "",
        *_wrapped(
            f"Pools: {advice.pool_size:.0f} memories on average. In the framework's own top {g.k} "
            f"a memory's nearest other lies at cosine {g.nearest:.2f}; they span "
            f"{g.effective_rank:.1f} of {g.k} directions; {100 * g.near_duplicates:.1f} % are "
            f"near-duplicates. The best memory is at cosine {g.best:.2f} to the question, any two "
            f"of the pool at {g.pairwise:.2f} to each other: crowding {g.crowding:+.2f}, a risk "
            "from 0 up."
        ),
        "",
        *_table(advice),
    ]
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent="  ")


def _table(advice: Advice) -> list[str]:
    heads = [f"K = {k}" for k in advice.budgets]
    lines = [_line("share of the own top K kept %", heads)]
    lines += [
        _line(f"  {p}", [f"{100 * advice.kept[p, k]:.0f}" for k in advice.budgets]) for p in PRESETS
    ]
    if advice.with_gold:
        lines.append(
            _line(
                "recall of the own top K %",
                [f"{100 * advice.recall[k]:.1f}" for k in advice.budgets],
            )
        )
        lines.append(_line("change in points [95 %]", [*("" for _ in heads), "mean over K"]))
        for p in PRESETS:
            pairs = [*(advice.change[p, k] for k in advice.budgets), advice.overall[p]]
            lines.append(_line(f"  {p}", [pair.in_points for pair in pairs]))
    return lines


def _line(name: str, cells: list[str]) -> str:
    return (f"{name:31}" + "".join(f"{cell:>21}" for cell in cells)).rstrip()
