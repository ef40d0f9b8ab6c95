"""The paired evaluation: the same stores and pools, read without and with MemPursuit."""
