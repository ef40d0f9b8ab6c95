"""The arms: ways to choose from one and the same pool."""

from mempursuit_eval.selectors.base import ORDER, Selector, SelectorUnavailableError
from mempursuit_eval.selectors.registry import PURSUITS, make_selector

__all__ = ["ORDER", "PURSUITS", "Selector", "SelectorUnavailableError", "make_selector"]
