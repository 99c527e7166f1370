"""The figures as PNG files (matplotlib, which is imported only here and only when something is drawn)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WINDOW_SIZES = ("static", "window 4", "window 8", "window 16")
WINDOW_TYPES = ("window 8", "fixed 8, naive", "fixed 8, edge", "improved fixed 4", "interpolation 4", "adaptive T")
STILL = 3e-4
"""where a rate of change of 0 is drawn on a logarithmic axis"""


def draw(results: Mapping[str, Any], rates: Sequence[float], out: Path) -> None:
    """figure2.png .. figure6.png."""
    _strategies(results["strategies"], "all", "Figure 2: error on all pages", out / "figure2.png")
    _strategies(results["strategies"], "top", "Figure 3: error on the most important tenth", out / "figure3.png")
    kinds = (
        (4, WINDOW_SIZES, 0, "sizes of the variable window, all pages"),
        (5, WINDOW_TYPES, 0, "types of window, all pages"),
        (6, WINDOW_TYPES, 1, "types of window, the most important tenth"),
    )
    for number, policies, column, what in kinds:
        _windows(results, rates, policies, column, f"Figure {number}: {what}", out / f"figure{number}.png")


def _figure(title: str, across: str, up: str) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(title=title, xlabel=across, ylabel=up)
    axes.grid(visible=True, alpha=0.3)
    return figure, axes


def _strategies(found: Mapping[str, Any], pages: str, title: str, path: Path) -> None:
    figure, axes = _figure(f"{title} (N = {found['n']:,})", "reads / N", "mean relative error, %")
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


def _windows(
    results: Mapping[str, Any], rates: Sequence[float], policies: Sequence[str], column: int, title: str, path: Path
) -> None:
    figure, axes = _figure(f"{title} (greedy)", "pages changed per N reads", "mean relative error, %")
    for name in policies:
        errors = [results[f"greedy at {rate:g}"][name][column] for rate in rates]
        axes.plot([max(rate, STILL) for rate in rates], errors, "-o", markersize=3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [max(rate, STILL) for rate in rates]
    axes.set_xticks(ticks, [f"{100 * rate:g} %" for rate in rates])
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def draw_patterns(results: Mapping[str, Any], path: Path) -> None:
    """Importance by rank, one line a pattern."""
    figure, axes = _figure("Importance in patterns", "page, by rank", "importance (mean 1)")
    for name, found in results.items():
        axes.plot(range(1, len(found["curve"]) + 1), found["curve"], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
