"""`Handle` and `Installation`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mempursuit_adapters import handle as module
from mempursuit_adapters.handle import Handle, Installation
from mempursuit_adapters.patching import Patches
from mempursuit_adapters.pool import Pool
from mempursuit_adapters.reader import Reader
from mempursuit_core import Dials


class Target:
    def search(self) -> str:
        return "own"


def attach(target: Any) -> Handle:
    reader = Reader("toy", Dials())
    with Patches() as patches:
        patches.method(target, "search", lambda call, _: "pursued")
        return Handle(reader, patches)


def test_a_block_detaches_even_when_it_raises() -> None:
    target = Target()
    with attach(target) as handle:
        assert target.search() == "pursued"
        assert handle.attached
        assert "attached" in repr(handle)
    assert target.search() == "own"
    assert not handle.attached
    assert "detached" in repr(handle)
    with pytest.raises(LookupError), attach(target):
        raise LookupError
    assert vars(target) == {}


def test_detach_twice_does_not_touch_a_newer_attachment() -> None:
    target = Target()
    first = attach(target)
    first.detach()
    second = attach(target)
    first.detach()
    assert target.search() == "pursued"
    second.detach()


def test_last_stats_and_explain() -> None:
    handle = attach(Target())
    assert handle.last is None
    assert handle.explain() == "no search has been read yet"
    assert handle.stats().searches == 0
    choice = handle.reader.read(lambda: Pool(["a", "b"], np.eye(2), [0.0, 1.0]), 1)
    assert handle.last is choice
    assert handle.explain().splitlines() == [
        "1 of 2 memories, in entry order:",
        "  came in  b  (native rank 2, score +1.000)",
        "  went out a  (native rank 1)",
    ]
    assert handle.stats().searches == 1
    handle.detach()
    assert handle.last is choice  # what it did can still be asked


def test_a_failing_warm_up_does_not_stop_an_attach(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def warmup() -> None:
        calls.append(1)
        raise OSError("no cache folder")

    monkeypatch.setattr(module, "warmup", warmup)
    attach(Target()).detach()
    assert calls == [1]


def test_an_installation_is_one_at_a_time() -> None:
    class Fresh(Target):
        pass

    installation = Installation("toy")
    installation.uninstall()
    installation.refuse_second()
    handle = installation.keep(attach(Fresh))
    assert Fresh().search() == "pursued"
    with pytest.raises(RuntimeError, match=r"mempursuit_adapters\.toy is already installed"):
        installation.refuse_second()
    installation.uninstall()
    assert Fresh().search() == "own"
    assert not handle.attached
    installation.refuse_second()
    installation.keep(attach(Fresh)).detach()  # detaching the handle uninstalls too
    installation.refuse_second()
    installation.uninstall()
