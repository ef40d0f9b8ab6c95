"""Selection overlap and coverage, without and with (paper Fig. 3)."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from mempursuit_eval.analyses.figures import GAIN, LOSS, NATIVE, panels
from mempursuit_eval.report.tables import framework_name
from mempursuit_eval.results import OVERALL
from mempursuit_eval.saved import SavedRun
from mempursuit_eval.selectors import ORDER

PANELS = {"session_recall": "Gold-session recall %", "complete_coverage": "Complete coverage %"}


def measure(run: SavedRun, arm: str) -> dict[str, Any]:
    """Return overlap, session recall and complete coverage for every framework and K."""
    rates = {
        (r["framework"], r["k"], r["arm"]): r
        for r in run.metrics["rows"]
        if r["category"] == OVERALL
    }
    rows = []
    for shared in run.metrics["overlap"]:
        if shared["arm"] != arm:
            continue
        framework, k = shared["framework"], shared["k"]
        without, with_ = rates[framework, k, ORDER], rates[framework, k, arm]
        rows.append(
            {
                "framework": framework,
                "label": framework_name(run, framework),
                "k": k,
                "overlap": shared["overlap"],
                **{m: {"without": without[m], "with": with_[m]} for m in PANELS},
            }
        )
    return {
        "analysis": "overlap",
        "setting": f"{run.setting}; arm: {arm}",
        "arm": arm,
        "rows": rows,
    }


def draw(found: dict[str, Any]) -> Figure:
    """Return the figure: kept share, then recall and coverage from without to with."""
    rows = found["rows"]
    figure, (left, *others) = panels(3, height=0.9 + 0.28 * len(rows), sharey=True)
    places = range(len(rows))
    left.barh(places, [100 * r["overlap"] for r in rows], color=NATIVE, height=0.6)
    for n, row in enumerate(rows):
        left.text(100 * row["overlap"] + 1, n, f"{100 * row['overlap']:.0f}", va="center")
    left.set(title="Memories both contexts share %", xlim=(0, 112))
    left.set_yticks(places, [f"{r['label']}  K={r['k']}" for r in rows])
    left.invert_yaxis()
    for axis, (metric, title) in zip(others, PANELS.items(), strict=True):
        for n, row in enumerate(rows):
            before, after = row[metric]["without"], row[metric]["with"]
            if before is None:
                continue
            colour = GAIN if after >= before else LOSS
            axis.plot([100 * before, 100 * after], [n, n], color=colour, linewidth=2.5)
            axis.plot(100 * before, n, "o", color=NATIVE, markerfacecolor="white")
            axis.plot(100 * after, n, "o", color=colour)
            change = f"{100 * (after - before):+.1f}".replace("-", "−")
            axis.annotate(
                change, (100 * max(before, after), n), (7, 0), textcoords="offset points",
                va="center", color=colour,
            )  # fmt: skip
        axis.set_title(title)
        axis.margins(x=0.25)
    others[0].plot([], [], "o", color=NATIVE, markerfacecolor="white", label="without")
    others[0].plot([], [], "o", color=GAIN, label=f"with ({found['arm']})")
    figure.legend(loc="outside upper right", ncols=2)
    return figure
