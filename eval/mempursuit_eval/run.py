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
from mempursuit_eval.datasets import Conversation, Dataset
from mempursuit_eval.encoders import Encoder, MemoEncoder
from mempursuit_eval.pools import load_pools, save_pools
from mempursuit_eval.records import MemoryRecord
from mempursuit_eval.selectors import ORDER, Selector, make_selector
from mempursuit_eval.sources import MEMORY_KINDS, GivenMemories, MemorySource

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
    dataset: Dataset,
    encoder: Encoder,
    options: Options,
    tick: Tick | None = None,
    source: MemorySource | None = None,
) -> RunResult:
    """Run every framework over every conversation.

    Stores and pools are kept under `options.out`; what an earlier run finished there, with the
    same data, encoder and versions, is used again. Memories are the data set's own of the kind
    `options.memories`, unless `source` brings others.

    Raises:
        DataError: the data set has no memories of the wanted kind.
        ValueError, BackboneUnavailableError: a framework is unknown or not installed.
    """
    classes = {name: backbone_class(name) for name in options.frameworks}
    memo = MemoEncoder(encoder)
    source = source or GivenMemories(options.memories)
    source.check(dataset, options.frameworks)
    result = RunResult(dataset, options, encoder.name, {})
    arms = [make_selector(name) for name in options.arms]
    for name, cls in classes.items():
        result.stores[name] = store_folder(dataset, memo, source, cls)
        folders = conversation_folders(options.out / result.stores[name], dataset)
        result.versions[name] = cls.versions()
        result.kinds[name] = cls.kind
        for folder, conversation in zip(folders, dataset.conversations, strict=True):
            result.chosen.extend(
                _conversation(cls, memo, folder, conversation, source, options, arms, result, tick)
            )
        result.facts.setdefault(name, {}).update(source.facts(name, folders))
    return result


def _conversation(
    cls: type[Backbone],
    encoder: Encoder,
    folder: Path,
    conversation: Conversation,
    source: MemorySource,
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
        backbone = _open(cls, encoder, folder, lambda new: source.fill(new, conversation, report))
    result.records.update({r.id: r for r in source.records(folder, conversation)})
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
    cls: type[Backbone], encoder: Encoder, folder: Path, fill: Callable[[Backbone], None]
) -> Backbone:
    """Return the store of `folder`, written to its end."""
    if not is_filled(folder):
        # A half-written store of an interrupted run cannot be told from a whole one: start over.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        backbone = cls(encoder, folder)
        with closing(backbone):
            fill(backbone)
        (folder / _FILLED).touch()
    return cls(encoder, folder)


def is_filled(folder: Path) -> bool:
    """Return whether the store of a conversation was written to its end."""
    return (folder / _FILLED).exists()


def store_folder(
    dataset: Dataset, encoder: Encoder, source: MemorySource, cls: type[Backbone]
) -> str:
    """Return the folder of a framework's stores, under a run's; named by what they depend on."""
    parts = [dataset.sha256, encoder.name, source.key(cls.name), cls.name, cls.kind, cls.versions()]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
    return f"stores/{cls.name}-{key}"


def conversation_folders(root: Path, dataset: Dataset) -> list[Path]:
    """Return the folder of every conversation's store under `root`."""
    return [root / conversation_folder(n, c.id) for n, c in enumerate(dataset.conversations)]


def conversation_folder(n: int, conversation: str) -> str:
    """Return the name of the folder that holds the store of the n-th conversation."""
    return f"{n:02d}-{_slug(conversation)}"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:60]
