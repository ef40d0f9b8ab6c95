"""Benchmarks behind one small interface."""

from mempursuit_eval.datasets.base import Conversation, DataError, Dataset, Question
from mempursuit_eval.datasets.benchmarks import load_dataset
from mempursuit_eval.datasets.locomo import bundled_path, load_locomo

__all__ = [
    "Conversation",
    "DataError",
    "Dataset",
    "Question",
    "bundled_path",
    "load_dataset",
    "load_locomo",
]
