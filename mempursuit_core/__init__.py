"""MemPursuit's core: pick the memories that together answer the question."""

from mempursuit_core.presets import PRESETS, Dials, preset
from mempursuit_core.pursuit import select, select_many
from mempursuit_core.selection import Selection
from mempursuit_core.stopping import AdaptiveStop
from mempursuit_core.warm import warmup

__all__ = [
    "PRESETS",
    "AdaptiveStop",
    "Dials",
    "Selection",
    "preset",
    "select",
    "select_many",
    "warmup",
]
