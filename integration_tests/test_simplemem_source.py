"""The SimpleMem tests once more, on a checkout of its repository (0.3.0).

Both versions call themselves `simplemem`, so this one gets a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from integration_tests.shared import ROOT

TESTS = ("integration_tests/test_simplemem.py", "integration_tests/test_simplemem_conformance.py")


def test_everything_that_holds_for_the_package_holds_for_the_source() -> None:
    folder = os.environ.get("MEMPURSUIT_SIMPLEMEM_SRC")
    if not folder:
        pytest.skip("MEMPURSUIT_SIMPLEMEM_SRC does not name a checkout of aiming-lab/SimpleMem")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
        )

    layout = run("-c", "from integration_tests.simplemem_kit import LAYOUT; print(LAYOUT)")
    assert layout.stdout.split() == ["0.3.0"], layout.stderr

    tests = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)
    assert tests.returncode == 0, tests.stdout
