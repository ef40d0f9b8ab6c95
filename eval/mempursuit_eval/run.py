"""Fill the stores, fetch each question's pool once, and let every arm choose from it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mempursuit_adapters import Pool
from mempursuit_eval.backbones import Backbone, backbone_class
from mempursuit_eval.datasets import Conversation, DataError, Dataset
from mempursuit_eval.encoders import Encoder, MemoEncoder
from mempursuit_eval.pools import load_pools, save_pools
from mempursuit_eval.records import MemoryRecord
from mempursuit_eval.selectors import ORDER, Selector, make_selector

MEMORY_KINDS = ("observations", "turns")
_FILLED = "filled"  # marks a store that was written to its end

# tick(framework, conversation id, what, done, total)
Tick = Callable[[str, str, str, int, int], None]


@dataclass(frozen=True)
class Options:
    """What to run; see `mempursuit-eval run --help`."""

    frameworks: tuple[str, ...]
    budgets: tuple[int, ...]
    memories: str
    selectors: tuple[str, ...]
    out: Path

    def __post_init__(self) -> None:
        if self.memories not in MEMORY_KINDS:
            raise ValueError(f"--memories: {self.memories!r} is not one of {MEMORY_KINDS}")
        if not self.budgets or min(self.budgets) < 1:
            raise ValueError(f"--k: budgets must be whole numbers >= 1, got {self.budgets}")
        if not self.frameworks:
            raise ValueError("--frameworks: name at least one")
        for name in self.selectors:
            make_selector(name)

    @property
    def arms(self) -> tuple[str, ...]:
        """The selectors, the framework's own order first: every pair needs it."""
        return (ORDER, *(s for s in self.selectors if s != ORDER))


@dataclass(frozen=True)
class Chosen:
    """One arm's choice for one question and budget.

    `picks` are the memories the arm chose, in the order handed back; `ids` those that reach the
    model, which differ where a framework expands its picks (MemoryBank).
    """

    question: str
    framework: str
    k: int
    arm: str
    ids: tuple[str, ...]
    picks: tuple[str, ...]


@dataclass
class RunResult:
    """Everything a report needs."""

    dataset: Dataset
    options: Options
    encoder: str
    records: dict[str, MemoryRecord]
    chosen: list[Chosen] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    stores: dict[str, str] = field(default_factory=dict)  # framework -> folder under options.out
    # (framework, arm) -> milliseconds each pick took
    pick_ms: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))


def run(
    dataset: Dataset, encoder: Encoder, options: Options, tick: Tick | None = None
) -> RunResult:
    """Run every framework over every conversation.

    Stores and pools are kept under `options.out`; what an earlier run finished there, with the
    same data, encoder and versions, is used again.

    Raises:
        DataError: the data set has no memories of the wanted kind.
        ValueError, BackboneUnavailableError: a framework is unknown or not installed.
    """
    classes = {name: backbone_class(name) for name in options.frameworks}
    memo = MemoEncoder(encoder)
    for conversation in dataset.conversations:
        if not conversation.memories.get(options.memories):
            raise DataError(f"{conversation.id} has no {options.memories} to fill a store with")
    result = RunResult(
        dataset,
        options,
        encoder.name,
        {r.id: r for c in dataset.conversations for r in c.memories[options.memories]},
    )
    arms = [make_selector(name) for name in options.arms]
    for name, cls in classes.items():
        result.stores[name] = f"stores/{name}-{_key(dataset, memo, options.memories, cls)}"
        root = options.out / result.stores[name]
        result.versions[name] = cls.versions()
        result.kinds[name] = cls.kind
        for n, conversation in enumerate(dataset.conversations):
            folder = root / conversation_folder(n, conversation.id)
            result.chosen.extend(
                _conversation(cls, memo, folder, conversation, options, arms, result, tick)
            )
    return result


def _conversation(
    cls: type[Backbone],
    encoder: Encoder,
    folder: Path,
    conversation: Conversation,
    options: Options,
    arms: Sequence[Selector],
    result: RunResult,
    tick: Tick | None,
) -> Iterator[Chosen]:
    def report(what: str, done: int, total: int) -> None:
        if tick is not None:
            tick(cls.name, conversation.id, what, done, total)

    questions = conversation.questions
    saved, noted = folder / "pools.npz", folder / "facts.json"
    backbone: Backbone | None = None
    if not saved.exists() or not noted.exists() or cls.expands:
        report("fill", 0, 1)
        backbone = _open(cls, encoder, folder, conversation.memories[options.memories])
    try:
        if backbone is not None and not (saved.exists() and noted.exists()):
            pools: list[Pool] = []
            for question in questions:
                report("pool", len(pools), len(questions))
                pools.append(backbone.pool(question.text))
            save_pools(saved, pools)
            noted.write_text(json.dumps(backbone.facts(), indent=2, default=str))
        result.facts.setdefault(cls.name, {}).update(json.loads(noted.read_text()))
        widest = max(options.budgets)
        for done, (question, pool) in enumerate(
            zip(questions, load_pools(saved), strict=True), start=1
        ):
            pool = replace(pool, texts=[result.records[str(i)].text for i in pool.ids])
            for arm in arms:
                began = time.perf_counter()
                positions = list(arm.pick(pool, widest, question.text))
                result.pick_ms[cls.name, arm.name].append(1000 * (time.perf_counter() - began))
                for k in options.budgets:
                    picks = tuple(str(pool.ids[i]) for i in positions[:k])
                    ids = tuple(backbone.context(pool, positions[:k])) if backbone else picks
                    yield Chosen(question.id, cls.name, k, arm.name, ids, picks)
            report("choose", done, len(questions))
    finally:
        if backbone is not None:
            backbone.close()


def _open(
    cls: type[Backbone], encoder: Encoder, folder: Path, records: Sequence[MemoryRecord]
) -> Backbone:
    """Return the store of `folder`, written to its end."""
    if not (folder / _FILLED).exists():
        # A half-written store of an interrupted run cannot be told from a whole one: start over.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        backbone = cls(encoder, folder)
        with closing(backbone):
            backbone.fill(records)
        (folder / _FILLED).touch()
    return cls(encoder, folder)


def _key(dataset: Dataset, encoder: Encoder, memories: str, cls: type[Backbone]) -> str:
    """Return what a store depends on, shortened: another value is another folder."""
    parts = [dataset.sha256, encoder.name, memories, cls.name, cls.kind, cls.versions()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def conversation_folder(n: int, conversation: str) -> str:
    """Return the name of the folder that holds the store of the n-th conversation."""
    return f"{n:02d}-{_slug(conversation)}"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:60]
