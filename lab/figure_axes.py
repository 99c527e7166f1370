"""An empty figure for the laboratory's plots (matplotlib is imported only when something is drawn)."""

from __future__ import annotations

from typing import Any


def figure_of(title: str, across: str, up: str) -> tuple[Any, Any]:
    """An empty figure and its axes, drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(title=title, xlabel=across, ylabel=up)
    axes.grid(visible=True, alpha=0.3)
    return figure, axes
