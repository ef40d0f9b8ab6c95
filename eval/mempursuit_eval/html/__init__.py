"""The report as one self-contained HTML file."""

from mempursuit_eval.html.page import write_html

__all__ = ["write_html"]
