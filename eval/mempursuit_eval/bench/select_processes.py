"""What only a fresh process shows: peak memory, and the cold start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

# Peak memory is the process's high-water mark, reset before the selection.
_GROWTH = """
import json, sys, time
from pathlib import Path
import numpy as np
from mempursuit_core import select, warmup
P, d, k = map(int, sys.argv[1:])
rng = np.random.default_rng(P)
centres = rng.standard_normal((64, d), dtype=np.float32) + rng.standard_normal(d, dtype=np.float32)
pool = centres[rng.integers(64, size=P)]
for start in range(0, P, 1000):  # in pieces, so that the making does not set the mark
    part = pool[start : start + 1000]
    part += 0.8 * rng.standard_normal(part.shape, dtype=np.float32)
query = centres[:4].sum(axis=0) + rng.standard_normal(d, dtype=np.float32)
warmup()
pool @ query
def status(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
try:
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = status("VmRSS")
    select(query, pool, k)
    extra = max(0, status("VmHWM") - before) / 1e6
except OSError:  # Linux only
    extra = None
def timed(call):
    began = time.perf_counter(); call(); return 1000 * (time.perf_counter() - began)
ours, gemv = [], []
for _ in range(5):
    ours.append(timed(lambda: select(query, pool, k)))
    gemv.append(timed(lambda: pool @ query))
print(json.dumps({"ms": sorted(ours)[2], "gemv_ms": sorted(gemv)[2],
                  "pool_mb": pool.nbytes / 1e6, "extra_mb": extra}))
"""

_STARTS = {
    "import numpy": "import numpy",
    "import mempursuit_core": "import mempursuit_core",
    "first select": (
        "import numpy as np; from mempursuit_core import select; "
        "pool = np.random.default_rng(0).standard_normal((200, 1536), dtype=np.float32); "
        "select(pool[:3].sum(axis=0), pool, 20)"
    ),
}


def growth(sizes: tuple[int, ...], dimension: int, k: int) -> list[dict[str, Any]]:
    """Time one selection, and what memory it takes beyond the pool, for each pool size."""
    rows = []
    for P in sizes:
        found = json.loads(_python(_GROWTH, str(P), str(dimension), str(k)))
        rows.append(
            {"P": P, "d": dimension, "K": k, **found, "gemvs": found["ms"] / found["gemv_ms"]}
        )
    return rows


def cold_start(rounds: int) -> list[dict[str, Any]]:
    """Time whole processes, the compiled code already cached; median of `rounds` each, in s."""
    _python(_STARTS["first select"])
    seconds: dict[str, list[float]] = {what: [] for what in _STARTS}
    for _ in range(rounds):
        for what, code in _STARTS.items():
            began = time.perf_counter()
            _python(code)
            seconds[what].append(time.perf_counter() - began)
    bare = median(seconds["import numpy"])
    return [
        {"what": what, "seconds": median(took), "over numpy": median(took) - bare}
        for what, took in seconds.items()
    ]


def two_processes() -> float:
    """Return how much more two plain processes do at once than one: what this machine has free."""
    loop = "x = 0\nfor i in range(5_000_000): x += i"
    began = time.perf_counter()
    _python(loop)
    alone = time.perf_counter() - began
    with ThreadPoolExecutor(2) as both:
        began = time.perf_counter()
        list(both.map(_python, [loop, loop]))
    return 2 * alone / (time.perf_counter() - began)


def _python(code: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **_ONE_THREAD},
    ).stdout
