"""What only a fresh process shows: peak memory, and the cold start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

# Peak memory is the process's high-water mark, so it is read before and after the selection.
_GROWTH = """
import json, resource, sys, time
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
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pool @ query
before = peak()
select(query, pool, k)
grown = peak() - before
def timed(call):
    began = time.perf_counter(); call(); return 1000 * (time.perf_counter() - began)
ours, gemv = [], []
for _ in range(5):
    ours.append(timed(lambda: select(query, pool, k)))
    gemv.append(timed(lambda: pool @ query))
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps({"ms": sorted(ours)[2], "gemv_ms": sorted(gemv)[2],
                  "pool_mb": pool.nbytes / 1e6, "extra_mb": grown * unit / 1e6}))
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


def _python(code: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **_ONE_THREAD},
    ).stdout
