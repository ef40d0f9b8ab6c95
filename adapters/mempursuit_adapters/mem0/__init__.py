"""Mem0 (mem0ai 2.x): `search(rerank=True)` picks from the pool of its hybrid search.

from mempursuit_adapters.mem0 import attach

handle = attach(memory)                       # or install(), then a config block
memory.search("…", filters={"user_id": "ann"}, top_k=10, rerank=True)
print(handle.explain())                       # what came in, what went out
"""

from mempursuit_adapters.mem0.across import pool, pool_across, search_across, search_across_async
from mempursuit_adapters.mem0.attachment import attach, install, uninstall

__all__ = [
    "attach",
    "install",
    "pool",
    "pool_across",
    "search_across",
    "search_across_async",
    "uninstall",
]
