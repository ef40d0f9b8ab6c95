"""Where the reference material lies that is not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared(name: str) -> Path:
    """Return a file of the shared folder (MEMPURSUIT_SHARED, default ../shared), or skip."""
    folder = Path(os.environ.get("MEMPURSUIT_SHARED", ROOT.parent / "shared"))
    path = folder / name
    if not path.exists():
        pytest.skip(f"{path} is not there; set MEMPURSUIT_SHARED to the folder that has {name}")
    return path
