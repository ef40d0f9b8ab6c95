"""Showing a method its own object with one attribute changed, for one call.

What an adapter has to change for a single search it changes on a view, never on the user's object:
concurrent searches cannot see each other, and nothing has to be put back.
"""

from __future__ import annotations

import types
from functools import lru_cache
from typing import Any


def view(target: Any, attribute: str, value: Any) -> Any:
    """Return `target` with `attribute` reading as `value`.

    The view is an instance of a subclass of `type(target)` and shares its `__dict__`, so whatever
    a method writes to `self` lands in the target.

    Raises:
        TypeError: `target` has no `__dict__` or its class cannot be subclassed.
    """
    kind: Any = type(target)
    shown: Any = object.__new__(_view_class(kind, attribute))
    shown.__dict__ = vars(target)
    setattr(shown, _slot(attribute), value)
    return shown


def is_view(target: Any, attribute: str) -> bool:
    """Say whether `target` is a view whose `attribute` is not the original's."""
    return _slot(attribute) in getattr(type(target), "__slots__", ())


@lru_cache(maxsize=128)
def _view_class(cls: type, attribute: str) -> type:
    slot = _slot(attribute)

    def body(namespace: dict[str, Any]) -> None:
        namespace["__slots__"] = (slot,)
        namespace["__module__"] = cls.__module__
        if hasattr(cls, "__del__"):
            namespace["__del__"] = lambda shown: None  # a view's end is not the target's
        # A property wins over the entry of the same name in the shared __dict__.
        namespace[attribute] = property(lambda shown: getattr(shown, slot))

    return types.new_class(cls.__name__, (cls,), exec_body=body)


def _slot(attribute: str) -> str:
    return f"_mempursuit_{attribute}"
