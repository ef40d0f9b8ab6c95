"""MemoryBank, and any program that reads LangChain's FAISS store: the seeds are picked together.

    from mempursuit_adapters.memorybank import attach
    handle = attach(retrieval)                 # MemoryBank's LocalMemoryRetrieval, or a FAISS store
    retrieval.search_memory(query, vector_store)
    handle.detach()

Only the FAISS search inside a similarity search changes: it answers with the K seeds that pursuit
picks from the index's own top `pool_size`. What a framework builds on its seeds runs as it is, such
as MemoryBank's within-date neighbours, merging and date order; so the number of text chunks can
differ from K. Maximal marginal relevance, writes, deletes and saving see the index as it is.

Read against MemoryBank's source (langchain 0.0.146) and langchain-community 0.4.
"""

from mempursuit_adapters.memorybank.attach import attach, install, pool, uninstall

__all__ = ["attach", "install", "pool", "uninstall"]
