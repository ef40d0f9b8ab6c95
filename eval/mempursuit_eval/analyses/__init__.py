"""The paper's analyses on a finished run: a figure and a JSON each, one module an analysis.

Every module has `measure(run, ...)`, which returns the JSON's content, and `draw(found)`, which
returns its figure and needs nothing else.
"""
