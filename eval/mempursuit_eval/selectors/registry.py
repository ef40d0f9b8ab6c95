"""From a word of `--selectors` to an arm."""

from __future__ import annotations

from mempursuit_core import PRESETS
from mempursuit_eval.selectors.base import (
    ORDER,
    NativeOrder,
    Pursuit,
    Selector,
    SelectorUnavailableError,
)

PURSUITS = tuple(PRESETS)
CHOICES = f"{ORDER}, {', '.join(PURSUITS)}, mmr:LAMBDA, dpp:THETA or ce:MODEL"


def make_selector(name: str) -> Selector:
    """Return the arm called `name`.

    Raises:
        ValueError: there is no such arm, or its parameter is out of range.
        SelectorUnavailableError: its package or model is missing.
    """
    if name == ORDER:
        return NativeOrder()
    if name in PRESETS:
        return Pursuit(name, PRESETS[name])
    kind, colon, parameter = name.partition(":")
    if kind in ("mmr", "dpp"):
        weight = _weight(name, kind, parameter)
        try:
            from mempursuit_eval.selectors.diversified import Diversified
        except ImportError as error:
            raise SelectorUnavailableError(
                f"--selectors: {name} needs pyversity ({error}): pip install 'mempursuit[eval]'"
            ) from error
        return Diversified(name, kind, weight)
    if kind == "ce" and colon:
        if not parameter:
            raise ValueError("--selectors: ce: names no model; write ce:NAME or ce:/path/to/model")
        from mempursuit_eval.selectors.cross_encoder import CrossEncoderReranker

        return CrossEncoderReranker(name, parameter)
    raise ValueError(f"--selectors: {name!r} is not one of {CHOICES}")


def _weight(name: str, kind: str, parameter: str) -> float:
    try:
        weight = float(parameter)
    except ValueError:
        weight = float("nan")
    if not 0 <= weight <= 1:
        raise ValueError(
            f"--selectors: {name!r} must carry the weight of relevance, a number between 0 (only "
            f"diversity) and 1 (only relevance), e.g. {kind}:0.5"
        )
    return weight
