"""How the figures look, and how one is written beside its numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Wong's palette (Nature Methods 2011): told apart with every kind of colour blindness.
GAIN, LOSS, NATIVE, THIRD, FOURTH = "#0072B2", "#D55E00", "#6b7280", "#009E73", "#CC79A7"
SERIES = (GAIN, THIRD, FOURTH, LOSS, "#E69F00", "#56B4E9")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "mempursuit",  # the same numbers give the same file
}
CAPTION_PER_INCH = 20  # characters of a caption


def panels(
    count: int, width: float = 3.2, height: float = 2.8, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels in a row, each `width` × `height` inches."""
    figure = Figure(figsize=(width * count, height), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False, **shared)[0])


def styled(draw: Callable[[dict[str, Any]], Figure], found: dict[str, Any]) -> Figure:
    """Return draw(found) in the style of all figures."""
    with mpl.rc_context(STYLE):
        return draw(found)


def write_analysis(
    name: str, found: dict[str, Any], figure: Figure, folder: Path, formats: Sequence[str]
) -> list[Path]:
    """Write NAME.json and the figure in every format (svg, png, pdf); return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.json"]
    text = json.dumps(found, indent=2, ensure_ascii=False)
    paths[0].write_text(text + "\n", encoding="utf-8")
    caption = found.get("setting")
    if caption:
        width = int(CAPTION_PER_INCH * figure.get_figwidth())
        figure.supxlabel(fill(str(caption), width), fontsize=7, color=NATIVE, x=0.01, ha="left")
    for form in formats:
        paths.append(folder / f"{name}.{form}")
        with mpl.rc_context(STYLE):
            figure.savefig(paths[-1], dpi=200, metadata={"Date": None} if form == "svg" else None)
    return paths
