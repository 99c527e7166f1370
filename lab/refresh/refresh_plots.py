"""The plots of `xyro lab refresh` as PNG files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab.figure_axes import figure_of


def draw(results: Mapping[str, Any], out: Path) -> None:
    """WORLD-KNOWLEDGE.png: staleness over the optimum's and obsolescence against bandwidth; real.png: the histories."""
    for world, knowledge in (results["worlds"] | results["hard"]).items():
        for name, bandwidths in knowledge.items():
            title = f"{world}, {name} rates: staleness over the optimum's"
            _lines(bandwidths, "staleness", title, out / f"{world}-{name}.png")
    for world, knowledge in results["worlds"].items():
        estimated = knowledge["estimated"]
        _lines(estimated, "obsolescence", f"{world}, estimated: changes missed", out / f"{world}-obsolescence.png")
    if results["real"]:
        rows = {b: {row["policy"]: row for row in found} for b, found in results["real"]["real"].items()}
        _lines(rows, "staleness", "real histories: staleness over that of known rates", out / "real.png")


def _lines(bandwidths: Mapping[str, Mapping[str, Any]], measure: str, title: str, path: Path) -> None:
    """One line a policy."""
    figure, axes = figure_of(title, "reads a day, % of the pages", measure)
    across = [100 * float(bandwidth) for bandwidth in bandwidths]
    for turn, policy in enumerate(next(iter(bandwidths.values()))):
        values = [
            np.nan if scores[policy][measure] is None else scores[policy][measure] for scores in bandwidths.values()
        ]
        axes.plot(across, values, "-o" if turn < 10 else "--s", markersize=3, linewidth=1, label=policy)
    axes.set_xscale("log")
    axes.set_xticks(across, [f"{value:g}" for value in across])
    axes.minorticks_off()
    if measure in ("obsolescence", "staleness"):
        axes.set_yscale("log")
    axes.legend(fontsize=6, ncols=2)
    figure.savefig(path, dpi=120)
