"""Reading LoCoMo's evidence ids, slips included."""

from __future__ import annotations

import re
from typing import Any

# "D3:12", and the slips "D:11:26" and "D30:05"; several may share a string.
_TURN = re.compile(r"D:?\s*(\d+)\s*:\s*(\d+)")


def parse_evidence(value: Any) -> list[tuple[int, int]]:
    """Return (session, turn) pairs in order, each once; what is no id (a lone "D") is dropped.

    `value` is a string, a list of such, or None.
    """
    if value is None:
        return []
    parts = value if isinstance(value, (list, tuple)) else [value]
    found: dict[tuple[int, int], None] = {}
    for part in parts:
        if isinstance(part, (list, tuple)):
            found.update(dict.fromkeys(parse_evidence(part)))
        else:
            for session, turn in _TURN.findall(str(part)):
                found[int(session), int(turn)] = None
    return list(found)


def turn_id(session: int, turn: int) -> str:
    """Return the canonical id, e.g. "D3:12"."""
    return f"D{session}:{turn}"
