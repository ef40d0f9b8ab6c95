"""Seeing whether an object, what it holds and their classes are as they were."""

from __future__ import annotations

import types
from typing import Any

DEPTH = 3  # an adapter may patch target.retriever.vector_store.client
MOST = 500
_PLAIN = (int, float, complex, str, bytes, bool, tuple, frozenset, types.NoneType)
_OPAQUE = (types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)


class Snapshot:
    """The attributes of a target, of the objects it holds and of all their classes."""

    def __init__(self, *targets: object) -> None:
        self._seen: dict[int, tuple[Any, dict[str, Any]]] = {}
        for target in targets:
            self._visit(target, DEPTH)

    def changes(self) -> list[str]:
        """Name every attribute that was added, removed or replaced since.

        Plain values of instances may change (a framework counts and caches); methods, objects and
        everything on classes must be the very same.
        """
        found = []
        for owner, before in self._seen.values():
            where = owner.__name__ if isinstance(owner, type) else f"<{type(owner).__name__}>"
            now = _attributes(owner)
            found += [f"{where}.{name} was left behind" for name in now.keys() - before.keys()]
            found += [f"{where}.{name} is gone" for name in before.keys() - now.keys()]
            found += [
                f"{where}.{name} was replaced"
                for name in before.keys() & now.keys()
                if now[name] is not before[name] and not _may_change(owner, before[name], now[name])
            ]
        return sorted(found)

    def _visit(self, owner: Any, depth: int) -> None:
        if id(owner) in self._seen or len(self._seen) >= MOST:
            return
        if isinstance(owner, type):
            for cls in owner.__mro__:
                if cls is not object and cls.__module__ != "builtins":
                    self._seen.setdefault(id(cls), (cls, _attributes(cls)))
            return
        if isinstance(owner, (*_PLAIN, *_OPAQUE)) or not hasattr(owner, "__dict__"):
            return
        attributes = _attributes(owner)
        self._seen[id(owner)] = (owner, attributes)
        self._visit(type(owner), depth)
        if depth:
            for value in attributes.values():
                self._visit(value, depth - 1)


def _attributes(owner: Any) -> dict[str, Any]:
    attributes = dict(vars(owner))
    if isinstance(owner, type):
        # A registry kept on a class (provider name -> class) counts entry by entry.
        for name, value in list(attributes.items()):
            if isinstance(value, dict) and not name.startswith("__"):
                attributes |= {f"{name}[{key!r}]": entry for key, entry in value.items()}
    return attributes


def _may_change(owner: Any, before: Any, now: Any) -> bool:
    return not isinstance(owner, type) and isinstance(before, _PLAIN) and isinstance(now, _PLAIN)
