"""Starting up: light import, cached code, and no cache folder at all. Each in its own process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mempursuit_core

PACKAGE = Path(mempursuit_core.__file__).parent

SELECT = """
import numpy as np
from mempursuit_core import select
rng = np.random.default_rng(0)
found = select(rng.normal(size=8), rng.normal(size=(30, 8)), 10)
print(found.indices.tolist())
"""


def run(code: str, *, at: Path = PACKAGE.parent, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter that imports the package from the folder `at`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_CACHE"))}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "PYTHONPATH": str(at), "PYTHONSAFEPATH": "1", **env},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.fixture(scope="module")
def expected() -> str:
    import numpy as np

    rng = np.random.default_rng(0)
    found = mempursuit_core.select(rng.normal(size=8), rng.normal(size=(30, 8)), 10)
    return str(found.indices.tolist())


def test_import_does_not_load_numba() -> None:
    code = "import sys, mempursuit_core; print('numba' in sys.modules, mempursuit_core.__file__)"
    assert run(code).stdout.split() == ["False", str(PACKAGE / "__init__.py")]


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A copy of the package beside which nothing can be written, not even by root."""
    copy = tmp_path / "site"
    ignore = shutil.ignore_patterns("__pycache__", "tests")
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=ignore)
    (copy / PACKAGE.name / "kernels" / "__pycache__").write_text("a file in the folder's place")
    return copy


def test_works_where_nothing_can_be_cached(sealed: Path, expected: str) -> None:
    nowhere = str(sealed / PACKAGE.name / "kernels" / "__pycache__" / "home")
    code = SELECT + "select(np.ones(2), np.eye(2), 1)\n" + SELECT
    done = run(code, at=sealed, HOME=nowhere, XDG_CACHE_HOME=nowhere)
    assert done.stdout.splitlines() == [expected, expected]
    assert done.stderr.count("RuntimeWarning") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_second_process_compiles_nothing(sealed: Path, tmp_path: Path, expected: str) -> None:
    code = SELECT + (
        "from mempursuit_core.kernels.pursue import pursue\n"
        "print(sum(pursue.stats.cache_hits.values()), sum(pursue.stats.cache_misses.values()))\n"
    )
    cache = str(tmp_path / "cache")
    first = run(code, at=sealed, NUMBA_CACHE_DIR=cache)
    second = run(code, at=sealed, NUMBA_CACHE_DIR=cache)
    assert first.stdout.splitlines() == [expected, "0 1"]
    assert second.stdout.splitlines() == [expected, "1 0"]
    assert first.stderr == second.stderr == ""


def test_cache_notices_a_change_in_any_kernel_file(sealed: Path, tmp_path: Path) -> None:
    """numba itself looks only at the file of the function that is called."""
    code = (
        "from mempursuit_core.kernels.pursue import pursue\n"
        "print(pursue._cache._cache_file._source_stamp)\n"
    )
    cache = str(tmp_path / "cache")
    before = run(code, at=sealed, NUMBA_CACHE_DIR=cache).stdout
    assert run(code, at=sealed, NUMBA_CACHE_DIR=cache).stdout == before
    with (sealed / PACKAGE.name / "kernels" / "refit.py").open("a") as file:
        file.write("\n# changed\n")
    assert run(code, at=sealed, NUMBA_CACHE_DIR=cache).stdout != before


def test_warmup_leaves_nothing_to_compile(tmp_path: Path) -> None:
    code = (
        "import mempursuit_core; mempursuit_core.warmup()\n"
        "from mempursuit_core.kernels.pursue import pursue\n"
        "before = len(pursue.signatures)\n"
        "import numpy as np\n"
        "for dtype in (np.float16, np.float32, np.float64, np.int64):\n"
        "    pool = np.eye(5, dtype=dtype)\n"
        "    for made in (pool, pool.T, pool[::-1], pool.tolist(), pool[:, ::2]):\n"
        "        q = np.ones(np.shape(made)[1], dtype=dtype)\n"
        "        locked = np.array(made); locked.setflags(write=False)\n"
        "        if locked.any(axis=1).all():\n"
        "            mempursuit_core.select(q, made, 3)\n"
        "            mempursuit_core.select(q, locked, 3)\n"
        "print(before, len(pursue.signatures))\n"
    )
    before, after = run(code).stdout.split()
    assert before == after


def test_runs_as_plain_python(expected: str) -> None:
    """The kernels are a readable reference: the same answers with the compiler off."""
    assert run(SELECT, NUMBA_DISABLE_JIT="1").stdout.strip() == expected


@pytest.mark.parametrize(
    "cases",
    [
        "test_shared_oracle and float32 and (locomo2 or plane or one)",
        "test_own_reference and float64 and (shape3 or shape5)",
    ],
)
def test_oracle_as_plain_python(cases: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", cases, str(PACKAGE / "tests/test_oracle.py")],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
