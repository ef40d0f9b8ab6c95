"""The writing stage of `mempursuit-eval run`."""

from __future__ import annotations

from rich.console import Console

from mempursuit_eval.backbones import backbone_class
from mempursuit_eval.datasets import Dataset
from mempursuit_eval.encoders import Encoder
from mempursuit_eval.judged.cache import ReplyCache
from mempursuit_eval.judged.command import REPLIES
from mempursuit_eval.judged.progress import spent_line
from mempursuit_eval.native.options import WriterOptions
from mempursuit_eval.native.plan import make_plan, plan_lines, plan_table
from mempursuit_eval.native.source import NativeMemories
from mempursuit_eval.run import Options, conversation_folders, is_filled, store_folder
from mempursuit_eval.tables import NAMES


def native_memories(writing: WriterOptions, options: Options) -> NativeMemories:
    """Return the source of memories; replies are kept beside those of the answering stages.

    Raises:
        CacheError: the file of replies cannot be used.
        EndpointError: the key is missing.
    """
    return NativeMemories(writing, options.out / REPLIES)


def show_writing_plan(
    memories: NativeMemories, dataset: Dataset, encoder: Encoder, options: Options, console: Console
) -> bool:
    """Print what writing the memories would take; return whether everything is written already.

    Nothing is called.

    Raises:
        DataError, ValueError, BackboneUnavailableError: they could not be written.
    """
    memories.check(dataset, options.frameworks)
    plans, facts = [], {}
    with ReplyCache(options.out / REPLIES) as cache:
        for name in options.frameworks:
            root = options.out / store_folder(dataset, encoder, memories, backbone_class(name))
            left = [
                conversation
                for folder, conversation in zip(
                    conversation_folders(root, dataset), dataset.conversations, strict=True
                )
                if not is_filled(folder)
            ]
            writer = memories.writer(name)
            facts[name] = writer.facts()
            plans.append(
                make_plan(writer, left, len(dataset.conversations), memories.options.model, cache)
            )
    console.print(plan_table(plans))
    for line in plan_lines(plans, facts, memories.options.prices):
        console.print(line, highlight=False, soft_wrap=True)
    return not any(plan.calls for plan in plans)


def show_spent(memories: NativeMemories, console: Console) -> None:
    """Print what this run paid for writing, a line a framework that wrote."""
    for name, spent in memories.spent.items():
        console.print(
            f"{NAMES.get(name, name)} memories: {spent_line(spent, memories.options.prices)}",
            highlight=False,
            soft_wrap=True,
        )
