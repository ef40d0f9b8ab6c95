"""Read paths of frameworks that are not on PyPI, rewritten for the evaluator."""
