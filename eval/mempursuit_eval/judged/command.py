"""The answering and judging stages of `mempursuit-eval run`."""

from __future__ import annotations

from rich.console import Console

from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.caller import Caller
from mempursuit_eval.judged.client import Chat, RetryPolicy
from mempursuit_eval.judged.options import JudgeOptions
from mempursuit_eval.judged.plan import make_plan, plan_lines, plan_table
from mempursuit_eval.judged.progress import JudgeProgress, spent_line
from mempursuit_eval.judged.stages import Prompts, Stages, find_cases, judge_all
from mempursuit_eval.judged.summary import summarise
from mempursuit_eval.judged.writing import about_judging, write_judged
from mempursuit_eval.run import RunResult
from mempursuit_eval.tables import framework_label

WIDE = 120  # columns enough for the plan
REPLIES = "replies.sqlite"  # under the run's folder


def check(options: JudgeOptions) -> None:
    """Find out before the stores are filled what would stop the answering.

    Raises:
        PromptError: a prompt file of the user's cannot be used.
        EndpointError: the key is missing.
    """
    Prompts.chosen(options)
    if not options.dry_run:
        Chat(options.base_url).close()


def show_plan(result: RunResult, options: JudgeOptions, console: Console) -> None:
    """Print the calls and tokens that answering and judging `result` would take; call nothing."""
    stages = Stages(result, options, Prompts.chosen(options))
    with ReplyCache(result.options.out / REPLIES) as cache:
        plan = make_plan(stages, find_cases(result, options), options, cache)
    if not console.is_terminal:
        console = Console(width=WIDE)
    console.print(plan_table(plan, {f: framework_label(result, f) for f in result.kinds}))
    for line in plan_lines(plan, options):
        console.print(line, highlight=False, soft_wrap=True)


def judge_run(
    result: RunResult,
    options: JudgeOptions,
    console: Console,
    policy: RetryPolicy | None = None,
) -> None:
    """Answer and judge what `result` selected; add judged.jsonl and figures to its folder.

    `write_run` must have written the folder's other files.

    Raises:
        PromptError: a prompt file of the user's cannot be used.
        EndpointError: no call can succeed; what was answered before is kept.
    """
    out = result.options.out
    prompts = Prompts.chosen(options)
    stages = Stages(result, options, prompts)
    cases = find_cases(result, options)
    with ReplyCache(out / REPLIES) as cache:
        chat = Chat(options.base_url, policy or RetryPolicy(), options.concurrency)
        caller = Caller(cache, chat)
        with JudgeProgress(len(cases), caller.spent, console, options.prices) as progress:

            def stop() -> None:
                chat.stop()
                console.print("stopping; replies on their way are kept, Ctrl-C leaves them behind")

            judgements = judge_all(stages, cases, caller, options.concurrency, progress.tick, stop)
        chat.close()
        totals = cache.totals()
    write_judged(
        out,
        judgements,
        summarise(judgements, result.dataset.categories),
        about_judging(
            options,
            prompts,
            chat.address,
            chat.dialects,
            caller.spent,
            totals,
            rubrics=any(case.question.rubric for case in cases),
        ),
    )
    console.print(spent_line(caller.spent, options.prices), highlight=False, soft_wrap=True)
