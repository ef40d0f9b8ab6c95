"""From pools, and gold where there is some, to advice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mempursuit_adapters import choose
from mempursuit_adapters.triage import first_places, triage
from mempursuit_core import PRESETS
from mempursuit_eval.advise.asked import Asked
from mempursuit_eval.advise.geometry import Geometry, measure_geometry
from mempursuit_eval.datasets import DataError
from mempursuit_eval.statistics import Paired, compare_paired

CAREFUL = "auto"  # the preset to try where nothing can be measured
ENOUGH = 10  # questions, and candidates of a pool, below which vectors alone say nothing
SAME = 0.98  # a share of kept memories above which pursuit changes next to nothing


@dataclass(frozen=True)
class Advice:
    """What was measured and what follows.

    Attributes:
        questions, with_gold: how many were read, and how many have gold evidence.
        pool_size: mean number of candidates.
        geometry: the pools, and their top K at the middle budget.
        kept: (preset, K) -> mean share of the framework's own top K that pursuit keeps.
        recall: K -> mean recall of the framework's own top K (0-1); empty without gold.
        change: (preset, K) -> change in recall.
        overall: preset -> change in the mean recall over all K.
        preset: the one to switch on, or None: leave it off.
        why: one or two sentences.
    """

    questions: int
    with_gold: int
    pool_size: float
    budgets: tuple[int, ...]
    geometry: Geometry
    kept: dict[tuple[str, int], float]
    recall: dict[int, float]
    change: dict[tuple[str, int], Paired]
    overall: dict[str, Paired]
    preset: str | None = None
    why: str = ""
    cautions: tuple[str, ...] = field(default_factory=tuple)


def advise(asked: Iterable[Asked], budgets: Sequence[int]) -> Advice:
    """Read every pool in native order and by both presets, and say what to do.

    Raises:
        DataError: no question has a pool with two usable memories.
    """
    budgets = tuple(budgets)
    vectors, kept = [], {(p, k): list[float]() for p in PRESETS for k in budgets}
    recalls: dict[tuple[str, int], list[float]] = {
        (p, k): [] for p in ("", *PRESETS) for k in budgets
    }
    sizes: list[int] = []
    for one in asked:
        native = first_places(one.pool.ids)
        sizes.append(len(native))
        found = triage(one.pool, native)
        if found.query is not None and len(found.rows) > 1:
            vectors.append((found.query, np.stack(found.rows)))
        picked = {
            p: choose(one.pool, max(budgets), dials).positions for p, dials in PRESETS.items()
        }
        for k in budgets:
            for preset, positions in picked.items():
                kept[preset, k].append(_shared(native[:k], positions[:k]))
            if one.gold:
                recalls["", k].append(one.recall(native[:k]))
                for preset, positions in picked.items():
                    recalls[preset, k].append(one.recall(positions[:k]))
    if not vectors:
        raise DataError("no question has two memories with usable vectors to choose from")
    with_gold = len(recalls["", budgets[0]])
    change, overall = {}, {}
    if with_gold:
        change = {
            (p, k): compare_paired(recalls["", k], recalls[p, k]) for p in PRESETS for k in budgets
        }
        mean = {arm: np.mean([recalls[arm, k] for k in budgets], axis=0) for arm in ("", *PRESETS)}
        overall = {p: compare_paired(mean[""], mean[p]) for p in PRESETS}
    geometry = measure_geometry(vectors, budgets[len(budgets) // 2])
    shares = {cell: float(np.mean(values)) for cell, values in kept.items()}
    size = float(np.mean(sizes))
    if with_gold:
        chosen, why = _from_gold(overall, with_gold)
    else:
        chosen, why = _from_geometry(geometry, shares, len(sizes), size)
    return Advice(
        len(sizes),
        with_gold,
        size,
        budgets,
        geometry,
        shares,
        {k: float(np.mean(recalls["", k])) for k in budgets} if with_gold else {},
        change,
        overall,
        chosen,
        why,
        _cautions(chosen, change, with_gold),
    )


def _shared(a: Sequence[int], b: Sequence[int]) -> float:
    return len(set(a) & set(b)) / len(a) if a else 1.0


def _from_gold(overall: dict[str, Paired], n: int) -> tuple[str | None, str]:
    """Decide by the interval of the change in mean recall over all K."""
    helps = {p: pair for p, pair in overall.items() if pair.ci_low > 0}
    if helps:
        best = max(helps, key=lambda p: helps[p].delta)
        return best, f"it raises mean recall by {helps[best].in_points} points on {n} questions."
    hurts = [p for p, pair in overall.items() if pair.ci_high < 0]
    said = ", ".join(f"{p} {pair.in_points}" for p, pair in overall.items())
    if hurts:
        return None, f"{' and '.join(hurts)} loses evidence here (change in mean recall: {said})."
    widest = max(pair.ci_high - pair.ci_low for pair in overall.values()) / 2
    return None, (
        f"no difference is shown on {n} questions (change in mean recall: {said}). An effect below "
        f"about {100 * widest:.0f} points cannot be seen with so many; more questions with gold "
        "evidence would tell."
    )


def _from_geometry(
    geometry: Geometry, kept: dict[tuple[str, int], float], questions: int, size: float
) -> tuple[str | None, str]:
    """Decide without gold, where only the risk can be read off the vectors."""
    if min(kept.values()) >= SAME:
        return None, "it would hand back the same memories: the pools are hardly larger than K."
    if questions < ENOUGH or size < ENOUGH:
        return None, (
            f"too few to judge: {questions} questions over pools of {size:.0f} memories, without "
            f"gold evidence. {ENOUGH} questions to a store of more memories than that would do."
        )
    if geometry.crowding >= 0:
        return None, (
            "memories lie closer to each other than to the questions, as long raw messages do; on "
            "such stores the paper's rule lost evidence. Try it only with gold evidence at hand."
        )
    return CAREFUL, (
        "nothing in the vectors speaks against it, and this preset lost little on every store it "
        "was measured on. Whether it gains anything here only gold evidence can tell."
    )


def _cautions(
    preset: str | None, change: dict[tuple[str, int], Paired], with_gold: int
) -> tuple[str, ...]:
    found = [
        f"not at K = {k}: there it loses {pair.in_points} points."
        for (p, k), pair in change.items()
        if p == preset and pair.ci_high < 0
    ]
    if with_gold:
        found.append(
            "Recall of evidence is not accuracy of answers; `run --answerer --judge` measures that."
        )
    else:
        found.append(
            "Without gold evidence nobody can say whether the memories that come in are the ones "
            "that were missing; a hundred questions with it show a change of about three points."
        )
    return tuple(found)
