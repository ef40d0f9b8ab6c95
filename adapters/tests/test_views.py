"""Views: an object as one call sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pytest

from mempursuit_adapters.views import is_view, view


class Base(ABC):
    def __init__(self) -> None:
        self.index = "real"
        self.count = 0

    @abstractmethod
    def read(self) -> Any: ...

    def bump(self) -> str:
        self.count += 1
        return self.index


class Target(Base):
    def read(self) -> Any:
        return self.index


def test_only_the_one_attribute_differs_and_only_on_the_view() -> None:
    target = Target()
    shown = view(target, "index", "shown")
    assert (shown.read(), target.read()) == ("shown", "real")
    assert vars(shown) is vars(target)
    assert isinstance(shown, Target)
    assert type(shown).__name__ == "Target"
    assert is_view(shown, "index")
    assert not is_view(shown, "count")
    assert not is_view(target, "index")


def test_writes_land_in_the_target() -> None:
    target = Target()
    assert view(target, "index", "shown").bump() == "shown"
    assert target.count == 1
    target.count = 7
    assert view(target, "index", "shown").count == 7


def test_a_view_can_replace_a_method() -> None:
    target = Target()
    assert view(target, "read", lambda: "other").read() == "other"
    assert target.read() == "real"


def test_views_of_one_class_are_independent() -> None:
    target = Target()
    first, second = view(target, "index", 1), view(target, "index", 2)
    assert (first.index, second.index) == (1, 2)
    assert type(first) is type(second)


def test_an_object_without_a_dict_is_refused() -> None:
    with pytest.raises(TypeError):
        view(3, "real", 4)
    with pytest.raises(TypeError):
        view(None, "index", 4)
