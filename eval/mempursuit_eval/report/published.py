"""The paper's figures, and in what our setting differs from theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mempursuit_eval.download import LOCOMO_SHA256
from mempursuit_eval.results import OVERALL

MODEL = "gpt-4o-mini"  # the paper's answerer and judge
WRITER = "native"  # --memories when the framework's own writer filled the store
MEM0_ENCODER = "text-embedding-3-small"
MEM0 = ("mem0", "mem0-paper")

_CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop", OVERALL)


@dataclass(frozen=True)
class Published:
    """Percentages by category, without and with MemPursuit, and the paper's table or figure."""

    source: str
    without: dict[str, float]
    with_: dict[str, float]


def _row(text: str) -> dict[str, float]:
    return dict(zip(_CATEGORIES, (float(word) for word in text.split()), strict=True))


# (framework, K) as in --frameworks; "mem0-paper" is the paper's "Mem0 Paper OSS".
ACCURACY: dict[tuple[str, int], Published] = {
    (framework, k): Published("Table 4", _row(without), _row(with_))
    for framework, k, without, with_ in (
        ("lightmem", 10, "62.77 66.98 56.25 77.17 71.10", "69.15 68.22 57.29 79.19 73.70"),
        ("memorybank", 10, "53.55 43.30 51.04 65.87 57.99", "56.74 39.25 56.25 70.27 60.45"),
        ("simplemem", 10, "62.41 48.60 56.25 74.91 65.97", "70.21 49.22 60.42 82.28 71.82"),
        ("mem0-paper", 10, "45.04 42.37 43.75 57.43 51.17", "55.32 49.84 48.96 67.54 60.45"),
        ("lightmem", 20, "73.40 70.09 63.54 83.12 77.40", "74.11 70.09 61.46 83.71 77.73"),
        ("memorybank", 20, "59.22 48.91 54.17 72.89 64.22", "64.18 47.66 54.17 78.72 68.05"),
        ("simplemem", 20, "70.21 52.96 67.71 79.90 71.75", "77.66 54.83 64.58 85.97 76.62"),
        ("mem0-paper", 20, "56.38 47.04 51.04 63.85 58.18", "58.51 51.71 50.00 69.32 62.47"),
    )
} | {
    ("mem0", 10): Published("Table 10", {}, {OVERALL: 81.04}),
    ("mem0", 20): Published(
        "Table 9", _row("75.5 73.8 64.6 84.9 79.6"), _row("80.9 77.9 63.5 90.7 85.1")
    ),
    ("mem0", 50): Published("Table 10", {}, {OVERALL: 87.08}),
}

COVERAGE: dict[str, dict[tuple[str, int], Published]] = {
    "session_recall": {
        ("mem0", 10): Published("§4.3", {OVERALL: 82.9}, {OVERALL: 90.3}),
        ("mem0", 20): Published("§4.3", {OVERALL: 91.3}, {OVERALL: 94.8}),
    },
    "complete_coverage": {
        ("mem0", 10): Published("§4.3", {OVERALL: 77.1}, {OVERALL: 84.5}),
        ("mem0", 20): Published("§4.3", {OVERALL: 86.2}, {OVERALL: 90.3}),
    },
}


def comparable(manifest: dict[str, Any]) -> bool:
    """Return whether the run is on the paper's data, so that its figures may stand beside ours."""
    return bool(manifest["data"]["sha256"] == LOCOMO_SHA256)


def differences(manifest: dict[str, Any], framework: str, *, judged: bool) -> list[str]:
    """Return in what a run's setting differs from the paper's, for one framework; empty: nothing.

    `judged` also compares what only answers and verdicts depend on.
    """
    found = []
    memories = manifest["options"]["memories"]
    if memories != WRITER:
        found.append(f"memories are the data set's {memories}, not the framework's own writer's")
    if framework in MEM0 and MEM0_ENCODER not in manifest["encoder"]:
        found.append(f"encoder {manifest['encoder']}, not {MEM0_ENCODER}")
    if manifest["frameworks"][framework]["backbone"] == "port":
        found.append("a port stands in for the package")
    about = manifest.get("judged")
    if not judged or about is None:
        return found
    found += [
        f"{role} {about[role]}, not {MODEL}"
        for role in ("answerer", "judge")
        if not _is_model(about[role])
    ]
    if about["limit"]:
        found.append(f"{about['limit']} questions, not all")
    return found


def _is_model(name: str | None) -> bool:
    """Also with a provider before it or a date after it, e.g. "openai/gpt-4o-mini-2024-07-18"."""
    last = (name or "").rsplit("/", 1)[-1]
    return last == MODEL or last.startswith(f"{MODEL}-20")
