"""The frameworks the evaluator can fill and read, one module each."""
