"""The suite catches broken adapters: every defect put into the toy's adapter fails its check."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration_tests.conformance import Fault, toy, toy_adapter
from integration_tests.conformance.test_toy import ToyConformance

PICKS = "[rows[i] for i in choice.positions]"
READ = "reader.read(lambda: _pool(index, vector, rows), limit)"
FAILED = "reader.failed(error)"
HANDLE = "return Handle(reader, patches)"


class Defect(NamedTuple):
    """`old` in the toy adapter's source becomes `new`; `check`, at least, must fail."""

    name: str
    old: str
    new: str
    check: str


DEFECTS = [
    # The pool
    Defect(
        "pool in another order",
        "memory.index.nearest(vector, pool_size)",
        "memory.index.nearest(vector, pool_size)[::-1]",
        "pool_is_the_frameworks_top_with_its_own_vectors",
    ),
    Defect(
        "other vectors than the stored",
        "index.vectors(ids)",
        "index.vectors(ids[::-1])",
        "pool_is_the_frameworks_top_with_its_own_vectors",
    ),
    Defect("pool size ignored", "max(limit, size)", "200", "the_pool_is_no_larger_than_asked"),
    # The picks
    Defect(
        "search not replaced",
        'patches.method(index, "nearest", nearest)',
        "pass",
        "picks_are_the_cores_in_entry_order",
    ),
    Defect(
        "only the top K reordered",
        "max(limit, size)",
        "limit",
        "picks_are_the_cores_in_entry_order",
    ),
    Defect(
        "picks in native order",
        PICKS,
        "[rows[i] for i in sorted(choice.positions)]",
        "picks_are_the_cores_in_entry_order",
    ),
    Defect(
        "preset ignored",
        "resolve_dials(preset, **dials)",
        'resolve_dials("paper", **dials)',
        "picks_are_the_cores_in_entry_order",
    ),
    Defect(
        "dials ignored",
        "resolve_dials(preset, **dials)",
        "resolve_dials(preset)",
        "dials_are_passed_on",
    ),
    Defect("a row too many", PICKS, PICKS + " + rows[-1:]", "budgets_from_one_to_above_the_store"),
    Defect(
        "one row doubled",
        PICKS,
        "[rows[choice.positions[0]] for _ in choice.positions]",
        "budgets_from_one_to_above_the_store",
    ),
    Defect(
        "budget cut to the pool",
        "max(limit, size)",
        "size",
        "budgets_from_one_to_above_the_store",
    ),
    Defect(
        "a small pool loses rows",
        "max(limit, size)",
        "size",
        "a_pool_smaller_than_the_budget_loses_no_row",
    ),
    Defect(
        "an empty store raises", f"choice = {READ}", f"rows[0]; choice = {READ}", "an_empty_store"
    ),
    Defect("another type handed back", PICKS, f"tuple({PICKS})", "the_result_keeps_its_form"),
    Defect(
        "rows made over",
        PICKS,
        '[rows[i] | {"score": 0.0} for i in choice.positions]',
        "the_rows_are_the_frameworks_own",
    ),
    # Costs and errors
    Defect(
        "query embedded again",
        "token = _searching.set(True)",
        "memory.embed(args[0]); token = _searching.set(True)",
        "no_embedding_call_is_added",
    ),
    Defect(
        "embeds on attach",
        HANDLE,
        f'memory.embed("hello"); {HANDLE}',
        "no_embedding_call_is_added",
    ),
    Defect(
        "framework's errors swallowed",
        "        finally:",
        "        except ConnectionError:\n            return []\n        finally:",
        "the_frameworks_own_errors_stay_its_own",
    ),
    # Attaching and detaching
    Defect(
        "detach does nothing",
        HANDLE,
        "return Handle(reader, Patches())",
        "detach_restores_everything",
    ),
    Defect(
        "something left on the target",
        HANDLE,
        f"memory.mempursuit = reader; {HANDLE}",
        "detach_restores_everything",
    ),
    Defect(
        "a bound method left on an inner object",
        HANDLE,
        f"memory.index.vectors = memory.index.vectors; {HANDLE}",
        "a_with_block_detaches_also_on_an_error",
    ),
    Defect(
        "second attach ignored",
        "with Patches() as patches:",
        "with suppress(RuntimeError), Patches() as patches:",
        "attaching_twice_is_refused",
    ),
    Defect(
        "refusal destroys the first",
        "return _patch(memory, memory.index,",
        "vars(memory).pop('search', None); return _patch(memory, memory.index,",
        "attaching_twice_is_refused",
    ),
    Defect(
        "any target accepted",
        "not isinstance(memory, ToyMemory)",
        "False",
        "a_wrong_target_is_named",
    ),
    Defect(
        "pool size unchecked",
        "check_pool_size(pool_size)",
        "max(1, int(pool_size))",
        "a_wrong_argument_is_named_and_changes_nothing",
    ),
    Defect(
        "changed before checked",
        "size = check_pool_size(pool_size)",
        "memory.mempursuit = True; size = check_pool_size(pool_size)",
        "a_wrong_argument_is_named_and_changes_nothing",
    ),
    Defect(
        "attach changes the class",
        "_patch(memory, memory.index,",
        "_patch(ToyMemory, ToyIndex,",
        "an_instance_that_is_not_attached_stays_as_it_is",
    ),
    Defect(
        "instances share one attachment",
        "_patch(memory, memory.index,",
        "_installation._handle or install(pool_size=pool_size); return _installation._handle\n"
        "    _patch(memory, memory.index,",
        "two_instances_are_independent",
    ),
    # Installing
    Defect(
        "uninstall does nothing",
        "    _installation.uninstall()",
        "    pass",
        "install_covers_instances_and_uninstall_restores",
    ),
    Defect(
        "second install replaces the first",
        "_installation.refuse_second()",
        "_installation.uninstall()",
        "install_covers_instances_and_uninstall_restores",
    ),
    Defect(
        "install covers no class",
        "_patch(ToyMemory, ToyIndex,",
        "_patch(ToyMemory(None), ToyIndex(),",
        "install_covers_instances_and_uninstall_restores",
    ),
    Defect(
        "an installed class and its instance both choose",
        "with Patches() as patches:",
        "for f in (memory.search, index.nearest):\n"
        "        vars(getattr(f, '__func__', f)).pop('__mempursuit__', None)\n"
        "    with Patches() as patches:",
        "attaching_to_a_covered_instance_is_refused_or_wins",
    ),
    # Concurrency
    Defect(
        "queries meet in one place",
        f"choice = {READ}",
        "index.query = vector; time.sleep(0.002)\n"
        "        choice = reader.read(lambda: _pool(index, index.query, rows), limit)",
        "threads_get_what_each_would_get_alone",
    ),
    Defect(
        "`last` is anybody's",
        HANDLE,
        "reader.remember = lambda choice: setattr(reader, '_newest', choice) or time.sleep(0.002)\n"
        f"    {HANDLE}",
        "threads_get_what_each_would_get_alone",
    ),
    # Faults
    Defect(
        "an unreadable store reaches the caller",
        f"choice = {READ}",
        "pool = _pool(index, vector, rows); choice = reader.read(lambda: pool, limit)",
        f"a_fault_falls_back_with_one_warning[{Fault.VECTORS_UNREADABLE.value}]",
    ),
    Defect(
        "a failing wide search reaches the caller",
        FAILED,
        "raise",
        f"a_fault_falls_back_with_one_warning[{Fault.WIDE_SEARCH_FAILS.value}]",
    ),
    Defect(
        "falls back in silence",
        FAILED,
        "pass",
        f"a_fault_falls_back_with_one_warning[{Fault.WIDE_SEARCH_FAILS.value}]",
    ),
    Defect(
        "warns at every search",
        FAILED,
        f"{FAILED}; reader._warned.clear()",
        f"a_fault_falls_back_with_one_warning[{Fault.WIDE_SEARCH_FAILS.value}]",
    ),
    Defect(
        "one bad vector gives up the pool",
        "if choice is None",
        "if choice is None or choice.trouble",
        f"a_fault_falls_back_with_one_warning[{Fault.MISSING_VECTOR.value}]",
    ),
    *(
        Defect(
            f"loses what cannot be judged: {fault.value}",
            PICKS,
            "[rows[i] for i in choice.positions if i in choice.judged]",
            f"a_fault_falls_back_with_one_warning[{fault.value}]",
        )
        for fault in Fault
        if fault.hits_one_memory
    ),
    # The rest
    Defect(
        "other calls pursued as well",
        "if not _searching.get():",
        "if False:",
        "other_calls_are_untouched",
    ),
    Defect(
        "no texts to show", ', [row["text"] for row in rows])', ")", "the_handle_tells_what_it_did"
    ),
    Defect(
        "a search counted twice",
        f"choice = {READ}",
        f"{READ}; choice = {READ}",
        "the_handle_tells_what_it_did",
    ),
]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_is_caught(
    defect: Defect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = conformance_of(defect.old, defect.new, monkeypatch)
    outcomes = dict(run(suite, tmp_path, only=defect.check))
    assert outcomes
    assert any(error is not None for error in outcomes.values()), f"passed: {list(outcomes)}"


def test_the_adapter_without_a_defect_passes_every_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = dict(run(conformance_of("", "", monkeypatch), tmp_path))
    assert {name: error for name, error in outcomes.items() if error is not None} == {}
    checks = {name.split("[")[0] for name in outcomes}
    assert checks == {defect.check.split("[")[0] for defect in DEFECTS}, "a check nothing fails"


def conformance_of(old: str, new: str, patch: pytest.MonkeyPatch) -> ToyConformance:
    """Return the toy's suite on a private copy of the toy and of its adapter, `old` made `new`."""
    source = Path(toy_adapter.__file__).read_text(encoding="utf-8")
    assert not old or source.count(old) == 1, f"{old!r} must be in toy_adapter.py once"
    framework = load("toy", Path(toy.__file__).read_text(encoding="utf-8"))
    with patch.context() as importing:
        importing.setitem(sys.modules, toy.__name__, framework)
        adapter = load("toy_adapter", source.replace(old, new) if old else source)

    class Defective(ToyConformance):
        pass

    Defective.toy, Defective.adapter = framework, adapter
    return Defective()


def load(name: str, source: str) -> types.ModuleType:
    module = types.ModuleType(name)
    helpers = "import time\nfrom contextlib import suppress\n"
    head, future, body = source.partition("from __future__ import annotations\n")
    exec(compile(head + future + helpers + body, name, "exec"), vars(module))
    return module


def run(
    suite: ToyConformance, home: Path, only: str = ""
) -> Iterator[tuple[str, BaseException | None]]:
    """Run the suite's checks as pytest would; yield each one's name and error."""
    for number, (name, method, arguments) in enumerate(checks_of(suite)):
        if only and only not in (name, name.split("[")[0]):
            continue
        folder = home / str(number)
        folder.mkdir()
        error: BaseException | None = None
        try:
            with pytest.MonkeyPatch.context() as patch, suite.ready(folder, patch):
                method(**arguments)
        except pytest.skip.Exception:
            continue
        except (Exception, pytest.fail.Exception) as raised:
            error = raised
        yield name, error


def checks_of(suite: ToyConformance) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for attribute in dir(suite):
        if not attribute.startswith("test_"):
            continue
        method, name = getattr(suite, attribute), attribute.removeprefix("test_")
        marks = [m for m in getattr(method, "pytestmark", []) if m.name == "parametrize"]
        tables = [[(mark.args[0], value) for value in mark.args[1]] for mark in marks]
        for values in itertools.product(*tables):
            shown = ",".join(str(getattr(value, "value", value)) for _, value in values)
            yield (f"{name}[{shown}]" if shown else name), method, dict(values)
