"""Replacing methods so that everything can be put back exactly."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from types import MethodType, TracebackType
from typing import Any

_ABSENT = object()
_MARK = "__mempursuit__"
_lock = threading.RLock()  # of two attaches at the same moment, one must be refused

# around(call, instance, *args, **kwargs): `call` is the original, bound to `instance` (for a class
# or static method: the class). It may be async where the original is.
Around = Callable[..., Any]


class Patches:
    """A set of replaced attributes on objects or classes, undone in reverse order.

    As a context manager it undoes everything if the block raises, so that an `attach` that fails
    half-way leaves nothing behind. It holds its owners until :meth:`undo`.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []
        self.active = True

    def method(self, owner: Any, name: str, around: Around) -> None:
        """Replace `owner.name`, an instance's or a class's method, by `around`.

        What was a static or class method or a coroutine function stays one. A deep copy of a
        patched instance searches itself, not the instance it was copied from.

        Raises:
            AttributeError: `owner` has no such method.
            RuntimeError: the method is already replaced by MemPursuit.
            TypeError: `owner` cannot hold a replacement (`__slots__`, built-in classes).
        """
        with _lock:
            if is_patched(owner, name):
                raise RuntimeError(
                    f"{_describe(owner)}.{name} already reads through MemPursuit; "
                    "detach() the first handle (or uninstall()) before attaching another"
                )
            original = _Original(owner, name)
            method: Any = self._wrapper(original, around)
            if not isinstance(owner, type):
                method = MethodType(method, owner)  # rebinds when the instance is copied
            elif isinstance(original.raw, staticmethod):
                bare = functools.partial(method, owner)
                for shown in (*functools.WRAPPER_ASSIGNMENTS, _MARK):
                    setattr(bare, shown, getattr(method, shown))
                method = staticmethod(bare)
            elif isinstance(original.raw, classmethod):
                method = classmethod(method)
            self.attribute(owner, name, method)

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Set `owner.name` to `value` until :meth:`undo`.

        Raises:
            TypeError: `owner` cannot hold the attribute (`__slots__`, built-in classes).
        """
        with _lock:
            before = _own(owner, name)
            try:
                _set(owner, name, value)
            except (AttributeError, TypeError) as error:
                raise TypeError(
                    f"cannot replace {_describe(owner)}.{name} ({error}); if the class has "
                    "__slots__, use install(), which replaces the method on the class"
                ) from error
            self._undo.append((owner, name, before, value))

    def undo(self) -> None:
        """Put everything back; an attribute somebody else replaced since is left alone.

        Whoever still holds one of our replacements finds that it acts as the original.
        """
        with _lock:
            self.active = False
            while self._undo:
                owner, name, before, ours = self._undo.pop()
                if _own(owner, name) is not ours:
                    continue
                if before is _ABSENT:
                    _delete(owner, name)
                else:
                    _set(owner, name, before)

    def __enter__(self) -> Patches:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.undo()

    def _wrapper(self, original: _Original, around: Around) -> Callable[..., Any]:
        def replaced(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
            call = original.bound_to(instance)
            if not self.active:
                return call(*args, **kwargs)
            return around(call, instance, *args, **kwargs)

        async def replaced_async(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = replaced(instance, *args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        is_async = inspect.iscoroutinefunction(original.seen)
        replacement: Callable[..., Any] = replaced_async if is_async else replaced
        original.dress(replacement)
        setattr(replacement, _MARK, self)
        return replacement


def is_patched(owner: Any, name: str) -> bool:
    """Say whether `owner.name` reads through MemPursuit now."""
    mark = getattr(getattr(owner, name, None), _MARK, None)
    return isinstance(mark, Patches) and mark.active


class _Original:
    """A method as it was found, before it was replaced."""

    def __init__(self, owner: Any, name: str) -> None:
        self.seen: Callable[..., Any] = getattr(owner, name)
        self.raw = inspect.getattr_static(owner, name, self.seen)
        # What an instance carries itself is called as it is; what its class carries is bound.
        of_class = isinstance(owner, type) or self.raw is not self.seen
        self._binds = of_class and hasattr(self.raw, "__get__")

    def bound_to(self, instance: Any) -> Callable[..., Any]:
        """Return the original as `instance.name` would give it."""
        if not self._binds:
            return self.seen
        kind = instance if isinstance(instance, type) else type(instance)
        bound: Callable[..., Any] = self.raw.__get__(instance, kind)
        return bound

    def dress(self, replacement: Callable[..., Any]) -> None:
        """Give `replacement` the name, documentation and signature of the original."""
        functools.update_wrapper(replacement, getattr(self.raw, "__func__", self.raw))
        if self._binds and not isinstance(self.raw, staticmethod):
            return
        # The original takes no `self`, so binding the replacement would hide a true parameter.
        del replacement.__wrapped__  # type: ignore[attr-defined]
        with suppress(TypeError, ValueError):  # some built-in functions show no signature
            signature = inspect.signature(self.seen)
            instance = inspect.Parameter("instance", inspect.Parameter.POSITIONAL_ONLY)
            replacement.__signature__ = signature.replace(  # type: ignore[attr-defined]
                parameters=[instance, *signature.parameters.values()]
            )


def _own(owner: Any, name: str) -> Any:
    """Return what `owner` itself carries under `name`, not what it inherits."""
    if not isinstance(owner, type):
        descriptor = inspect.getattr_static(type(owner), name, None)
        if hasattr(type(descriptor), "__set__"):  # a slot or a property
            return getattr(owner, name, _ABSENT)
    return getattr(owner, "__dict__", {}).get(name, _ABSENT)


def _set(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, type):
        setattr(owner, name, value)
        return
    try:
        # Past the class's own __setattr__: pydantic refuses or diverts unknown fields.
        object.__setattr__(owner, name, value)
    except TypeError:
        setattr(owner, name, value)


def _delete(owner: Any, name: str) -> None:
    if isinstance(owner, type):
        delattr(owner, name)
        return
    try:
        object.__delattr__(owner, name)
    except TypeError:
        delattr(owner, name)


def _describe(owner: Any) -> str:
    return owner.__name__ if isinstance(owner, type) else type(owner).__name__
