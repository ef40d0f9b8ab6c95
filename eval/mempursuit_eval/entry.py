"""Where the command `mempursuit-eval` starts."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install where the extra is missing."""
    try:
        from mempursuit_eval.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("mempursuit"):
            raise
        sys.exit(f"mempursuit-eval needs {error.name}: pip install 'mempursuit[eval]'")
    app()
