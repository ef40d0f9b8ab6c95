"""The writers by name, one module each."""

from __future__ import annotations

from importlib import import_module

from mempursuit_eval.native.base import Writer

WRITERS = {
    "mem0": "Mem0Writer",
    "mem0-paper": "Mem0PaperWriter",
    "lightmem": "LightMemWriter",
    "simplemem": "SimpleMemWriter",
    "memorybank": "MemoryBankWriter",
}


def make_writer(framework: str) -> Writer:
    """Return the writer of `framework`, importing the framework only now.

    Its backbone must have been found before (`backbone_class`), so the import cannot fail.

    Raises:
        ValueError: it has no writer.
        BackboneUnavailableError: it writes with more than its backbone needs, and that is missing.
    """
    if framework not in WRITERS:
        raise ValueError(
            f"--frameworks: {framework} has no writer of its own; those with one are "
            f"{', '.join(WRITERS)}"
        )
    module = import_module(f"mempursuit_eval.native.{framework.partition('-')[0]}")
    writer: Writer = getattr(module, WRITERS[framework])()
    return writer
