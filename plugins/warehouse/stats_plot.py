"""The figure of `xyro xml stats --plot` (matplotlib, which is imported only here and only when something is drawn)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xyro.wire.errors import InputError

SUFFIXES = (".png", ".svg", ".pdf")


def check(path: Path) -> None:
    """InputError where `draw` would fail; nothing is made."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"--plot {path}: name a file that ends in {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InputError(f"--plot {path}: there is no directory {path.parent}; make it first")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("--plot: needs matplotlib; install it with `pip install 'xyro[lab]'`") from None


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Draw eight panels of the statistics of warehouse_stats.py."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 8), layout="constrained")
    FigureCanvasAgg(figure)
    panels = iter(figure.subplots(2, 4).flat)
    pages, documents, dtds, versions = (found[name] for name in ("pages", "documents", "dtds", "versions"))
    _bars(next(panels), "pages read, by kind", {kind: fields["pages"] for kind, fields in pages.items()})
    _bars(next(panels), "XML documents, by validity", documents["validity"])
    _histograms(next(panels), "bytes", {kind: pages[kind]["size"] for kind in ("HTML", "XML")})
    _histograms(next(panels), "of a document", {name: documents[name] for name in ("elements", "tags", "depth")})
    _histograms(next(panels), "changes a day", {kind: pages[kind]["change_rate"] for kind in ("HTML", "XML")})
    _histograms(next(panels), "share of a document that a version changes", {"XML": versions["changed_share"]})
    _histograms(next(panels), "documents of a grammar", {"grammars": dtds["documents_per_grammar"]})
    _bars(next(panels), "DTDs, by nesting", dtds["nesting"])
    figure.savefig(path, dpi=100)


def _bars(axes: Any, title: str, counts: Mapping[str, int]) -> None:
    axes.set_title(title)
    axes.bar([str(name) for name in counts], list(counts.values()))
    axes.tick_params(axis="x", labelrotation=20)
    axes.grid(visible=True, axis="y", alpha=0.3)


def _histograms(axes: Any, title: str, spreads: Mapping[str, Mapping[str, Any]]) -> None:
    """Share of the numbers in each octave; zeros are drawn an octave below the least other number."""
    axes.set_title(title)
    drawn = False
    for name, spread in spreads.items():
        if not spread["count"]:
            continue
        ends = [end for end, _ in spread["histogram"] if end > 0]
        lowest = min(ends, default=1.0) / 2
        across = [end or lowest for end, _ in spread["histogram"]]
        axes.plot(across, [count / spread["count"] for _, count in spread["histogram"]], "-o", markersize=3, label=name)
        drawn = True
    if drawn:
        axes.set_xscale("log")
        axes.legend(fontsize=8)
    axes.grid(visible=True, alpha=0.3)
