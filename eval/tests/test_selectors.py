"""The arms: what each one picks from a pool worked out by hand, and how errors are named."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from eval.tests.tiny_locomo import tiny
from mempursuit_adapters import Pool, choose
from mempursuit_core import PRESETS
from mempursuit_eval.datasets import load_locomo
from mempursuit_eval.encoders.wordllama import WordLlamaEncoder
from mempursuit_eval.ranking import has_rivals, leads
from mempursuit_eval.results import compute_metrics
from mempursuit_eval.run import Options, run
from mempursuit_eval.selectors import SelectorUnavailableError, make_selector
from mempursuit_eval.selectors import cross_encoder as ce
from mempursuit_eval.writing import write_run


def unit(*degrees: float) -> list[list[float]]:
    """Return unit vectors in the plane at these angles to the query."""
    return [[np.cos(np.radians(a)), np.sin(np.radians(a))] for a in degrees]


QUERY = [1.0, 0.0]
# a and b nearly repeat each other, c is less relevant but new
PLAIN = Pool(ids=["a", "b", "c"], vectors=unit(20, 22, -30), query=QUERY)


def greedy_mmr(pool: Pool, k: int, weight: float) -> list[int]:
    M, q = np.array(pool.vectors), np.array(pool.query)
    M, q = M / np.linalg.norm(M, axis=1, keepdims=True), q / np.linalg.norm(q)
    relevance, picked = M @ q, []
    while len(picked) < k:
        best = max(
            (i for i in range(len(M)) if i not in picked),
            key=lambda i: (
                weight * relevance[i]
                - (1 - weight) * max((max(0.0, M[i] @ M[j]) for j in picked), default=0.0)
            ),
        )
        picked.append(best)
    return picked


def greedy_dpp(pool: Pool, k: int, weight: float) -> list[int]:
    """Return the greedy MAP of the kernel w_i w_j cos(i, j) with w = exp(θ z-score)."""
    M, q = np.array(pool.vectors), np.array(pool.query)
    M, q = M / np.linalg.norm(M, axis=1, keepdims=True), q / np.linalg.norm(q)
    relevance = M @ q
    w = np.exp(weight * (relevance - relevance.mean()) / relevance.std())
    L = w[:, None] * (M @ M.T) * w
    picked: list[int] = []
    while len(picked) < k:
        rest = [i for i in range(len(M)) if i not in picked]
        picked.append(max(rest, key=lambda i: np.linalg.det(L[np.ix_([*picked, i], [*picked, i])])))
    return picked


@pytest.mark.parametrize(
    ("name", "picks"),
    [
        ("order", [0, 1, 2]),
        ("mmr:1", [0, 1, 2]),  # only relevance
        ("mmr:0.5", [0, 2, 1]),  # b costs its cosine to a
        ("dpp:0.5", [0, 2, 1]),
        ("paper", [0, 2, 1]),  # a and c surround the query
    ],
)
def test_a_pool_worked_out_by_hand(name, picks):
    arm = make_selector(name)
    assert arm.name == name
    assert list(arm.pick(PLAIN, 3, "?")) == picks
    assert list(arm.pick(PLAIN, 2, "?")) == picks[:2], "budgets are nested"
    assert list(arm.pick(PLAIN, 9, "?")) == picks, "a small pool is returned whole"


@pytest.mark.parametrize("weight", [0.2, 0.5, 0.7])
@pytest.mark.parametrize(("kind", "greedy"), [("mmr", greedy_mmr), ("dpp", greedy_dpp)])
def test_the_parameter_is_the_weight_of_relevance(kind, greedy, weight):
    rng = np.random.default_rng(3)
    pool = Pool(ids=list(range(30)), vectors=rng.normal(size=(30, 12)), query=rng.normal(size=12))
    picks = list(make_selector(f"{kind}:{weight}").pick(pool, 8, "?"))
    assert picks == greedy(pool, 8, weight)


@pytest.mark.parametrize("name", ["paper", "auto", "mmr:0.5", "dpp:0.5"])
def test_memories_without_a_vector_keep_their_native_place(name):
    vectors = [None, *unit(20, 22), [np.nan, 1.0], *unit(-30), [1.0, 2.0, 3.0]]
    pool = Pool(ids=list("xabyzc"), vectors=vectors, query=QUERY)
    picks = list(make_selector(name).pick(pool, 4, "?"))
    assert (picks[0], picks[3]) == (0, 3), "x and y stay first and fourth"
    judged = Pool(ids=list("abz"), vectors=unit(20, 22, -30), query=QUERY)
    inner = [[1, 2, 4][i] for i in make_selector(name).pick(judged, 2, "?")]
    assert picks[1:3] == inner
    assert list(make_selector(name).pick(pool, 1, "?")) == [0]


@pytest.mark.parametrize("name", ["order", "paper", "mmr:0.5", "dpp:0.5"])
def test_pools_nobody_can_judge(name):
    arm = make_selector(name)
    assert list(arm.pick(Pool(ids=[], vectors=[], query=QUERY), 3, "?")) == []
    no_query = Pool(ids=["a", "b"], vectors=unit(0, 1), query=None)
    assert list(arm.pick(no_query, 1, "?")) == [0]
    repeated = Pool(ids=["a", "a", "b"], vectors=unit(20, 20, -30), query=QUERY)
    assert list(arm.pick(repeated, 3, "?")) == [0, 2], "a repeated id counts at its first place"


def test_pursuit_arms_choose_as_the_adapters_do():
    rng = np.random.default_rng(5)
    pool = Pool(ids=list(range(40)), vectors=rng.normal(size=(40, 16)), query=rng.normal(size=16))
    for name, dials in PRESETS.items():
        assert make_selector(name).pick(pool, 10, "?") == choose(pool, 10, dials).positions


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mmr", "'mmr' must carry the weight of relevance"),
        ("mmr:", "e.g. mmr:0.5"),
        ("mmr:1.5", "between 0 (only diversity) and 1 (only relevance)"),
        ("mmr:nan", "'mmr:nan'"),
        ("dpp:high", "e.g. dpp:0.5"),
        ("ce", "'ce' is not one of order, paper, auto, mmr:LAMBDA, dpp:THETA or ce:MODEL"),
        ("ce:", "names no model"),
        ("paper:0.5", "is not one of"),
    ],
)
def test_a_wrong_arm_is_named(name, says, tmp_path):
    with pytest.raises(ValueError, match="--selectors") as raised:
        Options(("rag",), (5,), "observations", (name,), tmp_path)
    assert says in str(raised.value)


@pytest.fixture
def sentence_transformers(monkeypatch):
    """A stand-in that scores a pair by the words it shares; counts how often a model loads."""
    loaded = []

    class CrossEncoder:
        def __init__(self, model):
            if model == "nowhere":
                raise OSError("no such model")
            loaded.append(model)

        def predict(self, pairs, batch_size, show_progress_bar):
            assert batch_size == ce.BATCH
            return [float(len(set(a.split()) & set(b.split()))) for a, b in pairs]

    module = ModuleType("sentence_transformers")
    module.CrossEncoder = CrossEncoder
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    ce.load_cross_encoder.cache_clear()
    yield loaded
    ce.load_cross_encoder.cache_clear()


def test_a_cross_encoder_ranks_by_question_and_text(sentence_transformers):
    arm = make_selector("ce:some/model")
    pool = Pool(
        ids=["a", "b", "c", "d"], vectors=[None] * 4, query=None,
        texts=["the cat", "a dog", "the red cat", "the blue cat"],
    )  # fmt: skip
    assert list(arm.pick(pool, 3, "the red cat")) == [2, 0, 3], "ties keep native order"
    make_selector("ce:some/model")
    assert sentence_transformers == ["some/model"], "loaded once however often it is named"


def test_a_missing_cross_encoder_says_what_to_do(sentence_transformers, monkeypatch):
    with pytest.raises(SelectorUnavailableError, match=r"ce:nowhere could not be loaded"):
        make_selector("ce:nowhere")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SelectorUnavailableError, match=r"pip install 'mempursuit\[minilm\]'"):
        make_selector("ce:other")


# --- which arm is best


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranked")
    (folder / "tiny.json").write_text(json.dumps(tiny()), encoding="utf-8")
    options = Options(
        ("rag",), (1, 2), "observations", ("order", "paper", "mmr:0.5", "dpp:0.5"), folder
    )
    return run(load_locomo(folder / "tiny.json"), WordLlamaEncoder(), options)


def test_leads_agree_with_the_metrics(result):
    metrics = compute_metrics(result)
    ranked = leads(result)
    assert len(ranked) == 2 * 2  # budgets × shown metrics
    for lead in ranked:
        rates = {arm: metrics.row("rag", lead.k, arm)[lead.metric] for arm in result.options.arms}
        assert lead.best_rate == pytest.approx(max(rates.values()))
        assert rates[lead.best] == pytest.approx(lead.best_rate)
        assert lead.next_rate == pytest.approx(max(v for a, v in rates.items() if a != lead.best))
        assert lead.paired.delta == pytest.approx(lead.best_rate - lead.next_rate)
        assert lead.clear == (lead.paired.ci_low > 0)


def test_only_other_arms_bring_the_ranking(result):
    assert has_rivals(result)
    usual = replace(result.options, selectors=("order", "paper", "auto"))
    assert not has_rivals(replace(result, options=usual))


def test_the_ranking_is_written_only_with_other_arms(result, tmp_path):
    for selectors, shown in ((result.options.selectors, True), (("order", "paper"), False)):
        options = replace(result.options, selectors=selectors, out=tmp_path)
        some = replace(
            result,
            options=options,
            chosen=[c for c in result.chosen if c.arm in options.arms],
        )
        write_run(some, compute_metrics(some), tmp_path / "tiny.json", "wordllama")
        table = (tmp_path / "table.md").read_text(encoding="utf-8")
        assert ("## Which arm is best" in table) == shown
        assert ("Median ms a pick: order " in table) == shown
