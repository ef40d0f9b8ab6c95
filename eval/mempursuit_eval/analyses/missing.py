"""Residual preference for missing evidence (paper Appendix C.3, Eq. 29, Fig. 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mempursuit_eval.analyses.distribution import draw_differences, summarise
from mempursuit_eval.analyses.reading import Judged, gold_positions, judged_pools
from mempursuit_eval.saved import SavedRun

SEED = 29  # of the representative drawn from memories that state one fact


def measure(run: SavedRun, framework: str) -> dict[str, Any]:
    """Return the mean utility difference of every question whose gold lies in several sessions.

    Each evidence memory s in turn is the selected set S = {s}. The remaining evidence (memories
    that rest on a gold turn s does not; one drawn per fact) is scored by U(m) = mᵀ(q − s), averaged
    within each session and then over sessions. It is compared with the memory most similar to the
    query among those that supply no unselected fact. Where the paper had a judge say which
    memories carry the answer, this takes the data set's gold turns.
    """
    rng = np.random.default_rng(SEED)
    differences, comparisons, incomplete = [], 0, 0
    for judged in judged_pools(run, framework):
        if len(judged.question.gold_sessions) < 2:
            continue
        gold = gold_positions(run, judged)
        sessions = {run.records[judged.ids[n]].session for n in gold}
        if not sessions >= judged.question.gold_sessions:
            incomplete += 1
            continue
        found = [
            value for s in gold if (value := _difference(run, judged, gold, s, rng)) is not None
        ]
        if found:
            differences.append(float(np.mean(found)))
            comparisons += len(found)
    return {
        "analysis": "missing",
        "setting": f"{run.setting}; framework: {framework}",
        "framework": framework,
        "comparisons": comparisons,
        "questions_with_a_gold_session_outside_the_pool": incomplete,
        **summarise(differences),
    }


def _difference(
    run: SavedRun, judged: Judged, gold: Sequence[int], s: int, rng: np.random.Generator
) -> float | None:
    """Return U_E − U(m_sem) with s selected; None if no evidence is missing then."""
    facts = {
        n: judged.question.gold_turns.intersection(run.records[judged.ids[n]].evidence)
        for n in gold
    }
    missing = [n for n in gold if not facts[n] & facts[s]]
    others = [n for n in range(len(judged.ids)) if n != s and n not in set(missing)]
    if not missing or not others:
        return None
    utility = judged.vectors @ (judged.query - judged.vectors[s])
    by_session: dict[int | None, list[float]] = {}
    for group in same_fact(missing, facts):
        n = group[int(rng.integers(len(group)))]
        by_session.setdefault(run.records[judged.ids[n]].session, []).append(float(utility[n]))
    evidence = float(np.mean([np.mean(values) for values in by_session.values()]))
    relevance = judged.vectors @ judged.query
    semantic = max(others, key=lambda n: relevance[n])
    return evidence - float(utility[semantic])


def same_fact(memories: Sequence[int], facts: dict[int, frozenset[str]]) -> list[list[int]]:
    """Group memories that share a fact with one another, directly or through others."""
    groups: list[tuple[set[str], list[int]]] = []
    for n in memories:
        turns, members = set(facts[n]), [n]
        apart = []
        for known, of in groups:
            if known & turns:
                turns |= known
                members = of + members
            else:
                apart.append((known, of))
        groups = [*apart, (turns, members)]
    return [sorted(members) for _, members in groups]


def draw(found: dict[str, Any]) -> Figure:
    """Return the histogram of the mean utility differences."""
    return draw_differences(
        found["differences"],
        "Residual preference for missing evidence",
        "mean utility difference, one evidence memory selected",
        ("prefers the missing evidence", "prefers the most similar other"),
    )
