"""The figures as PNG files (matplotlib, which is imported only here and only when something is drawn)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xyro.lab.figure_axes import figure_of

WINDOW_SIZES = ("static", "window 4", "window 8", "window 16")
WINDOW_TYPES = ("window 8", "fixed 8, naive", "fixed 8, edge", "improved fixed 4", "interpolation 4", "adaptive T")
STILL = 3e-4
"""where a rate of change of 0 is drawn on a logarithmic axis"""


def draw(results: Mapping[str, Any], out: Path) -> None:
    """figure2.png .. figure6.png."""
    _strategies(results["strategies"], "all", "Figure 2: error on all pages", out / "figure2.png")
    _strategies(results["strategies"], "top", "Figure 3: error on the most important tenth", out / "figure3.png")
    kinds = (
        (4, WINDOW_SIZES, "all", "sizes of the variable window, all pages"),
        (5, WINDOW_TYPES, "all", "types of window, all pages"),
        (6, WINDOW_TYPES, "top", "types of window, the most important tenth"),
    )
    for number, policies, pages, title in kinds:
        greedy = results["changes"]["greedy"]
        _windows(greedy, policies, pages, f"Figure {number}: {title}", out / f"figure{number}.png")


def _strategies(found: Mapping[str, Any], pages: str, title: str, path: Path) -> None:
    figure, axes = figure_of(f"{title} (N = {found['n']:,})", "reads / N", "mean relative error, %")
    for name, series in found["online"].items():
        (line,) = axes.plot(found["reads"], series[f"paper {pages}"], "-o", markersize=3, label=name)
        axes.plot(
            found["reads"], series[f"free {pages}"], "--", color=line.get_color(), label=f"{name}, endowment-free"
        )
    axes.plot(found["reads"], found["offline"][pages], "k:", label="offline (an iteration = N reads)")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.05)
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(path, dpi=120)


def _windows(greedy: Mapping[str, Any], policies: Sequence[str], pages: str, title: str, path: Path) -> None:
    """The mean over the seeds, and a bar from the least to the greatest."""
    figure, axes = figure_of(f"{title} (greedy)", "pages changed per N reads", "mean relative error, %")
    places = [max(float(rate), STILL) for rate in greedy]
    for name in policies:
        seeds = np.array([greedy[rate][name][pages] for rate in greedy])
        middle = seeds.mean(axis=1)
        spread = middle - seeds.min(axis=1), seeds.max(axis=1) - middle
        axes.errorbar(places, middle, spread, fmt="-o", markersize=3, linewidth=1, capsize=2, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(places, [f"{100 * float(rate):g} %" for rate in greedy])
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def draw_patterns(results: Mapping[str, Any], path: Path) -> None:
    """Importance by rank, one line a pattern."""
    figure, axes = figure_of("Importance in patterns", "page, by rank", "importance (mean 1)")
    for name, found in results.items():
        axes.plot(range(1, len(found["curve"]) + 1), found["curve"], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def draw_rank(sizes: Mapping[str, Any], path: Path) -> None:
    """Seconds of an iteration against N, one line a way to compute."""
    figure, axes = figure_of("Offline rank: an iteration", "pages", "seconds")
    names = [name for name in next(iter(sizes.values()))["ways"] if "bytes" not in name]
    for name in names:
        points = [(found["pages"], found["ways"][name]["seconds"]) for found in sizes.values() if name in found["ways"]]
        axes.plot(*zip(*points, strict=True), "-o", markersize=3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120)
