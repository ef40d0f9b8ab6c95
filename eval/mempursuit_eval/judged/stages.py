"""From selections to judged answers: which contexts there are, and how one is answered."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mempursuit_eval.datasets import Question
from mempursuit_eval.judged.caller import Caller
from mempursuit_eval.judged.calls import Reply, Request
from mempursuit_eval.judged.context import (
    ContextOrder,
    gold_text,
    reference_date,
    show_memories,
)
from mempursuit_eval.judged.errors import CallFailedError
from mempursuit_eval.judged.options import JudgeOptions
from mempursuit_eval.judged.parsing import (
    Verdict,
    parse_answer,
    parse_rubric_score,
    parse_verdict,
)
from mempursuit_eval.judged.scores import contains_gold, locomo_f1
from mempursuit_eval.judged.templates import ANSWER, JUDGE, Prompt, prompt_from, shipped_prompt
from mempursuit_eval.judged.tokens import Usage
from mempursuit_eval.run import RunResult

JUDGE_TOKENS = 512  # cap of a verdict with its reason
CUT = "length"  # the finish reason of a reply that ran into its cap

Cell = tuple[str, int, str]  # framework, budget, arm
Status = Literal["judged", "answered", "empty", "unparsed", "failed"]


@dataclass(frozen=True)
class Case:
    """One context to answer from; arms that chose the same memories share it.

    `ids` are the memories oldest first; `cells` are the places in the table it counts for.
    """

    question: Question
    ids: tuple[str, ...]
    repeat: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Judgement:
    """What became of a case.

    Attributes:
        status: "judged"; "answered": there is no judge; "empty": an empty answer, WRONG without a
            call; "unparsed": the judge's reply names no label; "failed": a call failed for good.
        score: 1 CORRECT, 0 WRONG, between for rubrics; None: not known, never counted as wrong.
        note: the form the verdict came in, or why there is none.
        answer: the final answer; None if its call failed.
        marked: whether the reply marked it as final.
        cut: whether the reply ran into its cap.
        f1, contains: the scores that need no LLM; None if the answer's call failed.
        usage: tokens of the answer's call; None if it failed.
        context_tokens: how many of them are memories.
        verdict_tokens: tokens of the judge's calls, both ways.
    """

    case: Case
    status: Status
    score: float | None
    note: str
    answer: str | None = None
    marked: bool = False
    cut: bool = False
    f1: float | None = None
    contains: bool | None = None
    usage: Usage | None = None
    context_tokens: float = 0.0
    verdict_tokens: int = 0


@dataclass(frozen=True)
class Prompts:
    """The templates of a run; `rubric` is for questions that bring criteria."""

    answer: Prompt
    judge: Prompt
    rubric: Prompt

    @classmethod
    def chosen(cls, options: JudgeOptions) -> Prompts:
        """Return the user's templates where given, else the shipped ones.

        A judge prompt of the user's also serves criteria, each in the place of the gold answer.

        Raises:
            PromptError: a file of the user's cannot be used.
        """
        judge = options.judge_prompt and prompt_from(options.judge_prompt, JUDGE, "--judge-prompt")
        return cls(
            prompt_from(options.answer_prompt, ANSWER, "--answer-prompt")
            if options.answer_prompt
            else shipped_prompt("answer"),
            judge or shipped_prompt("judge"),
            judge or shipped_prompt("rubric"),
        )


def find_cases(result: RunResult, options: JudgeOptions) -> list[Case]:
    """Return the distinct contexts of a run, question by question, for every repeat."""
    asked = {q.id: q for q in _spread(result.dataset.questions, options.limit)}
    in_order = ContextOrder(result.records)
    cells: dict[tuple[str, tuple[str, ...]], list[Cell]] = {}
    for c in result.chosen:
        if c.question in asked:
            cells.setdefault((c.question, in_order(c.ids)), []).append((c.framework, c.k, c.arm))
    place = {q: n for n, q in enumerate(asked)}
    found = sorted(cells.items(), key=lambda item: place[item[0][0]])
    return [
        Case(asked[question], ids, repeat, tuple(where))
        for repeat in range(options.repeats)
        for (question, ids), where in found
    ]


class Stages:
    """Makes the requests of a case and reads the replies."""

    def __init__(self, result: RunResult, options: JudgeOptions, prompts: Prompts) -> None:
        self._records = result.records
        self._options = options
        self._prompts = prompts
        self._dates = {
            q.id: options.reference_date or reference_date(q, c)
            for c in result.dataset.conversations
            for q in c.questions
        }

    def memories(self, case: Case) -> str:
        """Return the case's memories as the answerer reads them."""
        return show_memories(case.ids, self._records)

    def answer_request(self, case: Case) -> Request:
        """Return the request for an answer."""
        prompt = self._prompts.answer.render(
            question=case.question.text,
            reference_date=self._dates[case.question.id],
            memories=self.memories(case),
        )
        o = self._options
        return Request(
            "answer", o.answerer, prompt, float(o.temperature), o.max_tokens, case.repeat
        )

    def verdict_requests(self, case: Case, answer: str) -> list[Request]:
        """Return what to ask about `answer`: one verdict, or one a criterion; no judge, nothing."""
        question, judge = case.question, self._options.judge
        if judge is None:
            return []
        prompt = self._prompts.rubric if question.rubric else self._prompts.judge
        return [
            Request(
                "verdict",
                judge,
                prompt.render(
                    question=question.text,
                    gold_answer=wanted,
                    generated_answer=answer,
                    guidance=question.guidance,
                ),
                0.0,
                JUDGE_TOKENS,
                case.repeat,
            )
            for wanted in question.rubric or (gold_text(question),)
        ]

    def judge(self, case: Case, caller: Caller) -> Judgement:
        """Answer and judge one case."""
        request = self.answer_request(case)
        try:
            reply = caller.ask(request)
        except CallFailedError as error:
            return Judgement(case, "failed", None, f"answer: {error}")
        answer, gold = parse_answer(reply.text), gold_text(case.question)

        def judgement(status: Status, score: float | None, note: str, tokens: int = 0) -> Judgement:
            return Judgement(
                case, status, score, note, answer.text, answer.marked, reply.finish == CUT,
                locomo_f1(answer.text, gold, case.question.category),
                contains_gold(answer.text, gold),
                reply.usage,
                reply.usage.context(request.prompt, self.memories(case)),
                tokens,
            )  # fmt: skip

        if not answer.text:
            return judgement("empty", 0.0, "empty answer")
        requests = self.verdict_requests(case, answer.text)
        if not requests:
            return judgement("answered", None, "")
        try:
            replies = [caller.ask(r) for r in requests]
        except CallFailedError as error:
            return judgement("failed", None, f"verdict: {error}")
        tokens = sum(r.usage.prompt + r.usage.completion for r in replies)
        read = parse_rubric_score if case.question.rubric else parse_verdict
        verdicts = [_read_verdict(r, read) for r in replies]
        scores = [v.score for v in verdicts if v.score is not None]
        if len(scores) < len(verdicts):
            why = next(v.how for v in verdicts if v.score is None)
            return judgement("unparsed", None, why, tokens)
        how = sorted({v.how for v in verdicts})
        return judgement("judged", sum(scores) / len(scores), ", ".join(how), tokens)


def judge_all(
    stages: Stages,
    cases: Sequence[Case],
    caller: Caller,
    concurrency: int,
    done: Callable[[Judgement], None],
    stop: Callable[[], None],
) -> list[Judgement]:
    """Answer and judge every case, at most `concurrency` calls at a time.

    `done` is told of each as it comes. Before an error (or Ctrl-C) leaves, `stop` is called, and
    calls on their way are waited for: they are paid. A second Ctrl-C leaves them behind.

    Raises:
        EndpointError: no call can succeed.
    """
    halted, lock = threading.Event(), threading.Lock()
    todo = iter(enumerate(cases))
    finished: queue.SimpleQueue[tuple[int, Judgement | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        while not halted.is_set():
            with lock:
                n, case = next(todo, (-1, None))
            if case is None:
                return
            try:
                finished.put((n, stages.judge(case, caller)))
            except BaseException as error:
                halted.set()
                finished.put((n, error))

    # Daemons, and no executor: an executor's threads would hold up the second Ctrl-C.
    workers = [
        threading.Thread(target=work, name=f"judge-{n}", daemon=True) for n in range(concurrency)
    ]
    for worker in workers:
        worker.start()
    found: dict[int, Judgement] = {}
    try:
        while len(found) < len(cases):
            n, outcome = finished.get()
            if isinstance(outcome, BaseException):
                raise outcome
            found[n] = outcome
            done(outcome)
    except BaseException:
        halted.set()
        stop()
        for worker in workers:
            worker.join()
        raise
    return [found[n] for n in range(len(cases))]


def _read_verdict(reply: Reply, read: Callable[[str], Verdict]) -> Verdict:
    verdict = read(reply.text)
    if verdict.score is None and reply.finish == CUT:
        return Verdict(None, f"{verdict.how}, cut off")
    return verdict


def _spread(questions: Sequence[Question], limit: int | None) -> list[Question]:
    n = len(questions)
    if limit is None or limit >= n:
        return list(questions)
    return [questions[i * n // limit] for i in range(limit)]
