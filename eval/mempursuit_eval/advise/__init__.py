"""Whether to switch pursuit on over one's own store, and with which dials."""

from mempursuit_eval.advise.advice import Advice, advise
from mempursuit_eval.advise.asked import Asked, asked_of_run, asked_of_store

__all__ = ["Advice", "Asked", "advise", "asked_of_run", "asked_of_store"]
