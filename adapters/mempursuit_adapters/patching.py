"""Replacing methods so that everything can be put back exactly."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_ABSENT = object()
_MARK = "__mempursuit__"

# around(call, instance, *args, **kwargs): `call` is the original, bound to `instance`.
Around = Callable[..., Any]


class Patches:
    """A set of replaced attributes on objects or classes, undone in reverse order."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []
        self.active = True

    def method(self, owner: Any, name: str, around: Around) -> None:
        """Replace `owner.name`, an instance's or a class's method, by `around`.

        Raises:
            AttributeError: `owner` has no such method.
            RuntimeError: the method is already replaced by MemPursuit.
        """
        original = getattr(owner, name)
        if getattr(original, _MARK, False):
            raise RuntimeError(
                f"{_describe(owner)}.{name} already reads through MemPursuit; "
                "detach() the first handle (or uninstall()) before attaching another"
            )
        if isinstance(owner, type):

            @functools.wraps(original)
            def method(instance: Any, *args: Any, **kwargs: Any) -> Any:
                call = functools.partial(original, instance)
                # After undo() a stale reference to this function must act as the original.
                if not self.active:
                    return call(*args, **kwargs)
                return around(call, instance, *args, **kwargs)
        else:

            @functools.wraps(original)
            def method(*args: Any, **kwargs: Any) -> Any:
                if not self.active:
                    return original(*args, **kwargs)
                return around(original, owner, *args, **kwargs)

        setattr(method, _MARK, True)
        self.attribute(owner, name, method)

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Set `owner.name` to `value` until :meth:`undo`."""
        before = vars(owner).get(name, _ABSENT)
        self._undo.append((owner, name, before, value))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back; an attribute somebody else replaced since is left alone."""
        self.active = False
        while self._undo:
            owner, name, before, ours = self._undo.pop()
            if vars(owner).get(name, _ABSENT) is not ours:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def is_patched(owner: Any, name: str) -> bool:
    """Say whether MemPursuit has replaced `owner.name`."""
    return bool(getattr(getattr(owner, name, None), _MARK, False))


def _describe(owner: Any) -> str:
    return owner.__name__ if isinstance(owner, type) else type(owner).__name__
