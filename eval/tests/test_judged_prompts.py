"""Prompt files and what they are filled with."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from mempursuit_eval.datasets import Conversation, Question
from mempursuit_eval.judged.context import (
    ContextOrder,
    gold_text,
    human_date,
    reference_date,
    show_memories,
)
from mempursuit_eval.judged.parsing import parse_rubric_score, parse_verdict
from mempursuit_eval.judged.templates import (
    ANSWER,
    JUDGE,
    PromptError,
    prompt_from,
    shipped_prompt,
)
from mempursuit_eval.records import MemoryRecord

MAY, JUNE = datetime(2023, 5, 8, 13, 56), datetime(2023, 6, 1)
RECORDS = {
    r.id: r
    for r in (
        MemoryRecord("late", "Miso broke a vase.", "Ada", 2, JUNE),
        MemoryRecord("early", " Ada adopted a cat.\n", "Ada", 1, MAY),
        MemoryRecord("also early", "Ben grows tulips.", "Ben", 1, MAY),
    )
}
QUESTION = Question("q", "Why?", "Because; it rained", "open-domain", frozenset(), frozenset())


def test_memories_stand_oldest_first_with_readable_dates_and_nothing_else():
    ids = ContextOrder(RECORDS)(["late", "also early", "early", "late"])
    assert ids == ("early", "also early", "late")
    assert show_memories(ids, RECORDS) == (
        "[Monday, 8 May 2023] Ada adopted a cat.\n"
        "[Monday, 8 May 2023] Ben grows tulips.\n"
        "[Thursday, 1 June 2023] Miso broke a vase."
    )


def test_the_order_of_choice_does_not_show():
    one, two = (ContextOrder(RECORDS)(ids) for ids in (["late", "early"], ["early", "late"]))
    assert one == two


def test_an_empty_selection_says_so():
    assert "nothing was retrieved" in show_memories((), RECORDS)


def test_the_reference_date_is_the_last_sessions_unless_the_benchmark_gives_one():
    talk = Conversation("c", ("Ada", "Ben"), {"turns": tuple(RECORDS.values())}, (QUESTION,))
    assert reference_date(QUESTION, talk) == "Thursday, 1 June 2023"
    asked = replace(QUESTION, asked=datetime(2024, 2, 29))
    assert reference_date(asked, talk) == human_date(datetime(2024, 2, 29))
    assert human_date(datetime(2024, 2, 29)) == "Thursday, 29 February 2024"


def test_only_open_domain_gold_answers_are_cut():
    assert gold_text(QUESTION) == "Because"
    assert gold_text(replace(QUESTION, category="multi-hop")) == "Because; it rained"


def test_shipped_prompts_ask_for_what_is_parsed():
    answer = shipped_prompt("answer").render(
        question="Q?", reference_date="1 June 2023", memories="[1 May 2023] a note"
    )
    for part in ("Q?", "1 June 2023", "[1 May 2023] a note", "ANSWER:"):
        assert part in answer
    judge = shipped_prompt("judge")
    plain = judge.render(question="Q?", gold_answer="G", generated_answer="A", guidance="")
    for part in ("Q?", "Gold answer: G", "A", '"label"', "CORRECT", "WRONG"):
        assert part in plain
    told = judge.render(question="Q?", gold_answer="G", generated_answer="A", guidance="Be kind.")
    assert "Be kind." in told
    rubric = shipped_prompt("rubric").render(question="Q?", gold_answer="G", generated_answer="A")
    assert '"score"' in rubric


def test_a_judge_that_only_echoes_its_prompt_gives_no_verdict():
    values = {"question": "Q?", "gold_answer": "G", "generated_answer": "A"}
    assert parse_verdict(shipped_prompt("judge").render(**values)).score is None
    assert parse_rubric_score(shipped_prompt("rubric").render(**values)).score is None


def test_templates_inside_the_values_stay_text():
    nasty = "{{ question }} {% raw %} {{ 7*7 }} {# gone? #} {memories} %s ${x}"
    shown = shipped_prompt("answer").render(question=nasty, reference_date="d", memories=nasty)
    assert shown.count(nasty) == 2
    assert "49" not in shown


def test_a_users_prompt_is_used(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("{{ memories }} / {{ question|upper }} / {{ reference_date }}")
    mine = prompt_from(path, ANSWER, "--answer-prompt")
    assert mine.render(question="why", reference_date="d", memories="m") == "m / WHY / d"
    assert mine.name == "mine.txt"


@pytest.mark.parametrize(
    ("text", "needed", "says"),
    [
        ("{{ question }}", ANSWER, r"lacks the placeholder .*memories.*reference_date"),
        ("{question} {gold_answer} {generated_answer}", JUDGE, r"lacks the placeholder \{\{ gen"),
        (
            "{{ question }} {{ gold_answer }} {{ generated_answer }} {{ golden }}",
            JUDGE,
            "unknown placeholder golden",
        ),
        ("a\n{{ question ", JUDGE, r"mine\.j2, line 2"),
        ("{% if %}", JUDGE, r"mine\.j2, line 1"),
    ],
)
def test_a_broken_prompt_is_named(tmp_path, text, needed, says):
    path = tmp_path / "mine.j2"
    path.write_text(text)
    with pytest.raises(PromptError, match=says):
        prompt_from(path, needed, "--judge-prompt")


def test_a_missing_prompt_is_named(tmp_path):
    with pytest.raises(PromptError, match=r"--judge-prompt: .*none\.j2 cannot be read"):
        prompt_from(tmp_path / "none.j2", JUDGE, "--judge-prompt")
