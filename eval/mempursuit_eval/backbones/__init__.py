"""The frameworks the evaluator can fill and read, one module each."""

from __future__ import annotations

from importlib import import_module

from mempursuit_eval.backbones.base import Backbone

# name on the command line -> module, class, extra that installs it
_BACKBONES = {
    "rag": ("rag", "RagBackbone", "eval"),
    "mem0": ("mem0", "Mem0Backbone", "mem0"),
    "mem0-paper": ("mem0", "Mem0PaperBackbone", "mem0"),
    "lightmem": ("lightmem", "LightMemBackbone", "lightmem"),
    "simplemem": ("simplemem", "SimpleMemBackbone", "simplemem"),
    "memorybank": ("memorybank", "MemoryBankBackbone", "memorybank"),
}

FRAMEWORKS = tuple(_BACKBONES)


class BackboneUnavailableError(RuntimeError):
    """A framework's package is missing; the message says what to install."""


def backbone_class(name: str) -> type[Backbone]:
    """Return the backbone called `name`, importing its framework only now.

    Raises:
        ValueError: there is no such framework.
        BackboneUnavailableError: it is not installed.
    """
    if name not in _BACKBONES:
        raise ValueError(f"--frameworks: {name!r} is not one of {', '.join(FRAMEWORKS)}")
    module, cls, extra = _BACKBONES[name]
    try:
        found: type[Backbone] = getattr(import_module(f"{__name__}.{module}"), cls)
    except ImportError as error:
        lighter = " (or, without torch: pip install --no-deps simplemem)"
        raise BackboneUnavailableError(
            f"--frameworks: {name} is not installed ({error}): pip install 'mempursuit[{extra}]'"
            + (lighter if name == "simplemem" else "")
        ) from error
    return found


__all__ = ["FRAMEWORKS", "Backbone", "BackboneUnavailableError", "backbone_class"]
