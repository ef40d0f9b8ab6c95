"""The scores that need no LLM, against values worked out by hand."""

from __future__ import annotations

import pytest

from mempursuit_eval.judged.scores import contains_gold, locomo_f1, normalise, token_f1


def test_words_are_compared_as_locomo_does():
    assert normalise("The  Cat, and A dog's toy!") == ["cat", "dogs", "toy"]


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("a vase", "The vase!", 1.0),
        ("running shoes", "run shoe", 1.0),  # both stem to run, shoe
        ("she broke a vase", "a vase", 2 * (1 / 3) * 1 / (1 / 3 + 1)),
        ("vase vase", "vase", 2 * (1 / 2) * 1 / (1 / 2 + 1)),  # each word counts once
        ("a plate", "a vase", 0.0),
        ("", "a vase", 0.0),
        ("the", "the", 0.0),  # nothing is left to share
    ],
)
def test_token_f1(answer, gold, expected):
    assert token_f1(answer, gold) == pytest.approx(expected)


def test_multi_hop_answers_are_lists():
    # tulips: best of (1, 0); red roses: best of (0, 2·1·½/(1+½)).
    assert locomo_f1("tulips, roses", "tulips, red roses", "multi-hop") == pytest.approx(
        (1 + 2 / 3) / 2
    )
    # As one list of words for every other category: 2 of 2 said, 2 of 3 wanted.
    assert locomo_f1("tulips, roses", "tulips, red roses", "single-hop") == pytest.approx(
        2 * 1 * (2 / 3) / (1 + 2 / 3)
    )


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("It was on 7 May 2023.", "7 May, 2023", True),
        ("roses, then tulips", "tulips, roses", True),
        ("only roses", "tulips, roses", False),
        ("17 May", "7 May", False),
        ("a cat", "The cat", True),
        ("anything", "", False),
        ("anything", ",", False),
    ],
)
def test_the_gold_answer_is_contained_part_by_part(answer, gold, expected):
    assert contains_gold(answer, gold) is expected
