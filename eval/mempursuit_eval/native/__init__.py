"""Stores as each framework's own writer builds them, through an OpenAI-compatible endpoint.

The frameworks talk to a small endpoint on loopback (proxy.py), which keeps every reply: it is the
one seam all of them have (each makes its own client from a base URL), so calls are counted, kept
and retried in one place, and the key never reaches a framework.
"""
