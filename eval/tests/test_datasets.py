"""LoCoMo's format, its slips, and the bundled data set."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from eval.tests.tiny_locomo import tiny
from mempursuit_eval.datasets import DataError, bundled_path, load_locomo
from mempursuit_eval.datasets.evidence import parse_evidence
from mempursuit_eval.datasets.locomo import parse_when


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("D3:12", [(3, 12)]),
        ("D8:6; D9:17", [(8, 6), (9, 17)]),
        ("D9:1 D4:4 D4:6", [(9, 1), (4, 4), (4, 6)]),
        ("D:11:26", [(11, 26)]),
        ("D", []),
        ("D30:05", [(30, 5)]),
        ("D26:14, D26:34, D26:42", [(26, 14), (26, 34), (26, 42)]),
        (["D8:24", "D8:26"], [(8, 24), (8, 26)]),
        (["D1:1", ["D1:1", "D2:3; D1:1"]], [(1, 1), (2, 3)]),
        ("", []),
        (None, []),
        ([], []),
    ],
)
def test_evidence_ids_are_read_with_their_slips(value, expected):
    assert parse_evidence(value) == expected


def write(path: Path, samples: object) -> Path:
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


def test_the_format_is_read(tmp_path):
    data = load_locomo(write(tmp_path / "tiny.json", tiny()))
    (talk,) = data.conversations
    assert (data.name, talk.id, talk.speakers) == ("tiny", "tiny", ("Ada", "Ben"))
    assert [q.id for q in talk.questions] == [f"tiny/q{n}" for n in range(5)], "category 5 is out"
    assert [q.category for q in talk.questions] == [
        "single-hop", "multi-hop", "temporal", "open-domain", "multi-hop",
    ]  # fmt: skip
    assert [sorted(q.gold_sessions) for q in talk.questions] == [[2], [1, 2], [3], [], [1, 2]]
    assert [sorted(q.gold_turns) for q in talk.questions] == [
        ["D2:1"], ["D1:2", "D2:2"], ["D3:1"], [], ["D1:1", "D2:1"],
    ]  # fmt: skip
    assert talk.questions[2].answer == "2023"


def test_both_kinds_of_memory_are_read(tmp_path):
    (talk,) = load_locomo(write(tmp_path / "tiny.json", tiny())).conversations
    turns, facts = talk.memories["turns"], talk.memories["observations"]
    assert [t.id for t in turns] == [f"tiny/{d}" for d in ("D1:1", "D1:2", "D2:1", "D2:2", "D3:1")]
    assert turns[1].text == "Ben: Lovely! My garden is in bloom. [shares a photo of red tulips]"
    assert turns[1].when == datetime(2023, 5, 8, 13, 56)
    assert [(f.id, f.speaker, f.session) for f in facts] == [
        ("tiny/D1.f1", "Ada", 1), ("tiny/D1.f2", "Ben", 1), ("tiny/D2.f1", "Ada", 2),
        ("tiny/D2.f2", "Ben", 2), ("tiny/D3.f1", "Ada", 3),
    ]  # fmt: skip
    assert facts[2].evidence == ("D2:1", "D2:2")


def test_midnight_is_hour_zero():
    assert parse_when("12:09 am on 13 September, 2023") == datetime(2023, 9, 13, 0, 9)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda s: s[0].pop("qa"), "'qa' is missing"),
        (lambda s: s[0]["conversation"].pop("session_2_date_time"), "session_2_date_time"),
        (lambda s: s[0]["conversation"].update(session_1_date_time="May"), "'May' is not a"),
        (lambda s: s.append(s[0]), "sample_id must be unique"),
        (lambda s: s.clear(), "non-empty list"),
        (lambda s: s[0].update(observation=[1]), "sample 0: not in LoCoMo's format"),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path, spoil, says):
    samples = tiny()
    spoil(samples)
    with pytest.raises(DataError, match=says):
        load_locomo(write(tmp_path / "broken.json", samples))


def test_a_missing_file_points_to_the_download(tmp_path):
    with pytest.raises(DataError, match="download locomo"):
        load_locomo(tmp_path / "nothing.json")


def test_no_json_is_said_so(tmp_path):
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        load_locomo(tmp_path / "x.json")


@pytest.fixture(scope="module")
def data():
    return load_locomo(bundled_path())


class TestBundled:
    """The data set that ships: large enough, consistent, hard enough."""

    def test_sizes(self, data):
        assert len(data.conversations) >= 2
        for talk in data.conversations:
            assert len({t.session for t in talk.memories["turns"]}) >= 12
            assert len(talk.memories["observations"]) >= 120
        categories = Counter(q.category for q in data.questions)
        assert sum(categories.values()) >= 40
        assert all(categories[c] >= 8 for c in data.categories), categories

    def test_many_questions_need_several_sessions(self, data):
        several = [q for q in data.questions if len(q.gold_sessions) > 1]
        assert len(several) >= 0.4 * len(data.questions)

    def test_every_gold_turn_exists_and_is_reachable_through_an_observation(self, data):
        raw = json.loads(bundled_path().read_text(encoding="utf-8"))
        for sample, talk in zip(raw, data.conversations, strict=True):
            turns = {e for t in talk.memories["turns"] for e in t.evidence}
            cited = {e for f in talk.memories["observations"] for e in f.evidence}
            for qa in sample["qa"]:
                assert qa["evidence"], qa
                assert set(qa["evidence"]) <= turns, qa
                assert set(qa["evidence"]) <= cited, qa
            assert cited <= turns

    def test_no_memory_is_there_twice(self, data):
        for talk in data.conversations:
            texts = [f.text for f in talk.memories["observations"]]
            assert len(texts) == len(set(texts))

    def test_sessions_are_in_order_of_time(self, data):
        for talk in data.conversations:
            when = [t.when for t in talk.memories["turns"]]
            assert when == sorted(when)
