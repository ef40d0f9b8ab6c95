"""`Patches`: what is replaced comes back exactly."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from mempursuit_adapters.patching import Patches, is_patched


class Store:
    def __init__(self, name: str = "one") -> None:
        self.name = name

    def search(self, query: str, *, limit: int = 3) -> str:
        """Search the store."""
        return f"{self.name}:{query}:{limit}"

    async def asearch(self, query: str) -> str:
        return f"{self.name}:{query}"

    @staticmethod
    def clean(text: str) -> str:
        return text.strip()

    @classmethod
    def make(cls, name: str) -> str:
        return f"{cls.__name__}:{name}"


class Child(Store):
    pass


def shout(call: Callable[..., str], instance: Any, *args: Any, **kwargs: Any) -> str:
    return call(*args, **kwargs).upper()


def test_an_instance_is_replaced_and_restored() -> None:
    store, other = Store(), Store("two")
    before = store.search
    patches = Patches()
    patches.method(store, "search", shout)
    assert store.search("tea", limit=2) == "ONE:TEA:2"
    assert other.search("tea") == "two:tea:3"
    assert is_patched(store, "search")
    assert not is_patched(other, "search")
    patches.undo()
    assert store.search == before
    assert vars(store) == {"name": "one"}
    assert not patches.active
    patches.undo()


def test_the_replacement_looks_like_the_original() -> None:
    store = Store()
    signature = inspect.signature(store.search)
    for owner in (store, Store):
        patches = Patches()
        patches.method(owner, "search", shout)
        assert inspect.signature(store.search) == signature
        assert store.search.__doc__ == "Search the store."
        assert store.search.__name__ == "search"
        assert store.search.__self__ is store
        patches.undo()


def test_a_class_is_replaced_for_old_and_new_instances_and_restored() -> None:
    old, before = Store(), vars(Store)["search"]
    patches = Patches()
    patches.method(Store, "search", shout)
    assert old.search("tea") == "ONE:TEA:3"
    assert Store("new").search("tea") == "NEW:TEA:3"
    assert Store.search(old, "tea") == "ONE:TEA:3"
    patches.undo()
    assert vars(Store)["search"] is before


def test_an_inherited_method_is_not_left_on_the_child() -> None:
    patches = Patches()
    patches.method(Child, "search", shout)
    assert Child().search("tea") == "ONE:TEA:3"
    assert Store().search("tea") == "one:tea:3"
    patches.undo()
    assert "search" not in vars(Child)
    assert Child.search is Store.search


@pytest.mark.parametrize("name", ["clean", "make"])
def test_static_and_class_methods_stay_what_they_are(name: str) -> None:
    raw = vars(Store)[name]
    plain = getattr(Child, name)(" x ")
    for owner in (Store, Child, Store("one")):
        patches = Patches()
        patches.method(owner, name, shout)
        holder = owner if isinstance(owner, Store) else owner()
        assert getattr(holder, name)(" x ") == getattr(type(holder)(), name)(" x ").upper()
        assert list(inspect.signature(getattr(holder, name)).parameters) == [
            "text" if name == "clean" else "name"
        ]
        if isinstance(owner, type):
            assert getattr(owner, name)(" x ").isupper()
            assert type(vars(owner)[name]) is type(raw)
        assert is_patched(owner, name)
        patches.undo()
        assert vars(Store)[name] is raw
        assert name not in vars(Child)
    assert getattr(Child, name)(" x ") == plain


@pytest.mark.parametrize("owner", [Store, None])
def test_a_coroutine_function_stays_one(owner: Any) -> None:
    import asyncio

    async def around(call: Any, instance: Any, *args: Any) -> str:
        return (await call(*args)).upper()

    store = Store()
    for way in (around, shout_later):
        patches = Patches()
        patches.method(owner or store, "asearch", way)
        assert inspect.iscoroutinefunction(store.asearch)
        held = store.asearch
        assert asyncio.run(store.asearch("tea")) == "ONE:TEA"
        patches.undo()
        assert asyncio.run(held("tea")) == "one:tea"


def shout_later(call: Any, instance: Any, *args: Any) -> Any:
    async def later() -> str:
        return (await call(*args)).upper()

    return later()


def test_twice_is_refused_and_leaves_the_first_in_place() -> None:
    store, first = Store(), Patches()
    first.method(store, "search", shout)
    with pytest.raises(RuntimeError, match=r"Store\.search already reads through MemPursuit"):
        Patches().method(store, "search", shout)
    assert store.search("tea") == "ONE:TEA:3"
    first.undo()
    second = Patches()
    second.method(store, "search", shout)
    second.undo()


def test_an_instance_of_a_replaced_class_is_refused() -> None:
    patches = Patches()
    patches.method(Store, "search", shout)
    with pytest.raises(RuntimeError, match="uninstall"):
        Patches().method(Store(), "search", shout)
    with pytest.raises(RuntimeError, match="uninstall"):
        Patches().method(Child, "search", shout)
    patches.undo()


def test_instance_and_class_can_be_undone_in_either_order() -> None:
    for instance_first in (True, False):
        store, one, all_ = Store(), Patches(), Patches()
        one.method(store, "search", shout)
        all_.method(Store, "search", lambda call, _, *a, **k: call(*a, **k) + "!")
        assert store.search("tea") == "ONE:TEA:3"  # the instance's own attachment wins, once
        for patches in (one, all_) if instance_first else (all_, one):
            patches.undo()
        assert vars(store) == {"name": "one"}
        assert store.search("tea") == "one:tea:3"


def test_somebody_elses_later_wrapper_is_left_alone_and_ours_acts_as_the_original() -> None:
    store, patches = Store(), Patches()
    patches.method(store, "search", shout)
    ours = store.search

    @functools.wraps(ours)
    def theirs(*args: Any, **kwargs: Any) -> str:
        return "theirs " + ours(*args, **kwargs)

    store.search = theirs  # type: ignore[method-assign]
    patches.undo()
    assert store.search("tea") == "theirs one:tea:3"
    assert not is_patched(store, "search")
    again = Patches()
    again.method(store, "search", shout)
    assert store.search("tea") == "THEIRS ONE:TEA:3"
    again.undo()
    assert vars(store)["search"] is theirs


def test_an_instances_own_function_is_called_as_it_is_and_restored() -> None:
    store = Store()

    def own(query: str) -> str:
        return f"own {query}"

    store.search = own  # type: ignore[method-assign, assignment]
    patches = Patches()
    patches.method(store, "search", shout)
    assert store.search("tea") == "OWN TEA"
    assert list(inspect.signature(store.search).parameters) == ["query"]
    patches.undo()
    assert vars(store)["search"] is own


def test_a_held_reference_works_after_undo_and_without_the_instances_name() -> None:
    store, patches = Store(), Patches()
    patches.method(store, "search", shout)
    held = store.search
    del store
    gc.collect()
    assert held("tea") == "ONE:TEA:3"
    patches.undo()
    assert held("tea") == "one:tea:3"


def test_a_deep_copy_and_a_pickle_search_themselves() -> None:
    store, patches = Store(), Patches()
    patches.method(store, "search", shout)
    copied, thawed = copy.deepcopy(store), pickle.loads(pickle.dumps(store))
    copied.name = thawed.name = "copy"
    assert copied.search("tea") == "COPY:TEA:3"
    assert thawed.search("tea") == "copy:tea:3"  # another process has no MemPursuit
    patches.undo()
    assert copied.search("tea") == "copy:tea:3"


def test_nothing_keeps_the_target_after_undo() -> None:
    store, patches = Store(), Patches()
    patches.method(store, "search", shout)
    patches.undo()
    gone = weakref.ref(store)
    del store
    assert gone() is None


def test_a_target_that_is_dropped_while_attached_is_collected_with_its_patches() -> None:
    store, patches = Store(), Patches()
    patches.method(store, "search", shout)
    gone = weakref.ref(store)
    del store, patches
    gc.collect()
    assert gone() is None


class Slotted:
    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = [1]

    def search(self) -> str:
        return "slots"


def test_slots_refuse_a_method_with_advice_and_take_an_attribute() -> None:
    slotted = Slotted()
    patches = Patches()
    with pytest.raises(TypeError, match=r"Slotted\.search.*install\(\)"):
        patches.method(slotted, "search", shout)
    before, after = slotted.index, [2]
    patches.attribute(slotted, "index", after)
    assert slotted.index is after
    patches.undo()
    assert slotted.index is before
    on_class = Patches()
    on_class.method(Slotted, "search", shout)
    assert slotted.search() == "SLOTS"
    on_class.undo()


@pytest.mark.parametrize("extra", ["ignore", "allow", "forbid"])
def test_pydantic_objects(extra: Any) -> None:
    pydantic = pytest.importorskip("pydantic", reason="comes with mem0ai")

    class Retriever(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        model_config = pydantic.ConfigDict(extra=extra)
        name: str = "one"

        def search(self, query: str) -> str:
            return f"{self.name}:{query}"

    retriever, patches = Retriever(), Patches()
    before = retriever.model_dump()
    patches.method(retriever, "search", shout)
    assert retriever.search("tea") == "ONE:TEA"
    patches.undo()
    assert retriever.model_dump() == before
    assert vars(retriever) == {"name": "one"}
    assert retriever == Retriever()


def test_objects_that_answer_for_another() -> None:
    class Proxy:
        def __init__(self, inner: Store) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    proxy, patches = Proxy(Store()), Patches()
    patches.method(proxy, "search", shout)
    assert proxy.search("tea") == "ONE:TEA:3"
    patches.undo()
    assert list(vars(proxy)) == ["_inner"]


def test_a_missing_method_is_named() -> None:
    with pytest.raises(AttributeError, match="recall"):
        Patches().method(Store(), "recall", shout)


def test_an_attach_that_fails_half_way_leaves_nothing() -> None:
    store = Store()

    def attach() -> None:
        with Patches() as patches:
            patches.method(store, "search", shout)
            patches.method(store, "recall", shout)

    with pytest.raises(AttributeError):
        attach()
    assert vars(store) == {"name": "one"}


def test_a_block_that_succeeds_stays() -> None:
    store = Store()
    with Patches() as patches:
        patches.method(store, "search", shout)
    assert store.search("tea") == "ONE:TEA:3"
    patches.undo()


def test_an_attribute_is_set_and_restored_or_removed() -> None:
    store, patches = Store(), Patches()
    patches.attribute(store, "name", "two")
    patches.attribute(store, "fresh", 1)
    patches.attribute(store, "name", "three")
    assert (store.name, vars(store)["fresh"]) == ("three", 1)
    patches.undo()
    assert vars(store) == {"name": "one"}


def test_what_came_from_the_arounds_is_the_arounds_own_business() -> None:
    store, patches = Store(), Patches()

    def around(call: Any, instance: Any, *args: Any, **kwargs: Any) -> str:
        raise LookupError

    patches.method(store, "search", around)
    with pytest.raises(LookupError):
        store.search("tea")
    patches.undo()
