"""The command where the evaluator's extra is not installed."""

from __future__ import annotations

import sys

import pytest

from mempursuit_eval.entry import main


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)  # importing it now fails
    monkeypatch.delitem(sys.modules, "mempursuit_eval.cli", raising=False)
    with pytest.raises(SystemExit, match=r"needs typer: pip install 'mempursuit\[eval\]'"):
        main()
