"""What is changed around a framework while it writes, and put back."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from mempursuit_adapters.patching import Patches

_log = logging.getLogger(__name__)

# Some frameworks send their calls to OpenRouter wherever this is set, whatever they are told.
_DIVERTING = ("OPENROUTER_API_KEY",)
_NO_PROXY = ("NO_PROXY", "no_proxy")
_LOOPBACK = "127.0.0.1"


@contextmanager
def calls_stay_on_loopback() -> Iterator[None]:
    """Keep the environment from sending a framework's calls past the loopback endpoint."""
    before = {name: os.environ.get(name) for name in (*_DIVERTING, *_NO_PROXY)}
    try:
        for name in _DIVERTING:
            os.environ.pop(name, None)
        for name in _NO_PROXY:
            os.environ[name] = ",".join(filter(None, [before[name], _LOOPBACK]))
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def silenced(*modules: ModuleType) -> Iterator[None]:
    """Send what `modules` print to the log; sys.stdout belongs to the progress bars."""
    patches = Patches()
    try:
        for module in modules:
            patches.attribute(module, "print", _log_line)
        yield
    finally:
        patches.undo()


def _log_line(*values: object, **_: object) -> None:
    _log.debug("%s", " ".join(map(str, values)))
