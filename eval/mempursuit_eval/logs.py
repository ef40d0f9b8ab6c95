"""What the frameworks log goes to a file beside the figures, not between the progress bars."""

from __future__ import annotations

import logging
from pathlib import Path

LOG = "run.log"


def log_to(folder: Path) -> None:
    """Send every library's warnings to `folder`/run.log for the rest of the process.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # `force`: a library that configures the root logger on import must not win.
    logging.basicConfig(
        filename=folder / LOG,
        filemode="a",
        encoding="utf-8",
        level=logging.WARNING,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        force=True,
    )
    logging.captureWarnings(True)
