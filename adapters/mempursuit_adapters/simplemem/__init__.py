"""SimpleMem: `retrieve`, and so `ask`, keeps the K entries that together answer the question.

Works with SimpleMem 0.1.0 (PyPI) and 0.3.0 (GitHub). Planning, reflection and their searches run
as they are; the pool is everything they found, and only the final list is chosen anew.
"""

from mempursuit_adapters.simplemem.retriever import attach, install, pool, uninstall

__all__ = ["attach", "install", "pool", "uninstall"]
