"""A ranking for people and programs: its rows, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from xyro.plugins.rank.compute import Ask, Ranked
from xyro.wire.messages import Kind

CHUNK = 1 << 16


def rows(ranked: Ranked, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Pages by falling rank, `most` of them or all: columns `rank` of xyro.service.views.export."""
    for page in _best(ranked, most):
        yield _row(ranked, page)


def _best(ranked: Ranked, most: int | None) -> Iterator[int]:
    """Equal ranks stand in the order of their numbers."""
    size = ranked.rank.size
    step = size if most is None else max(CHUNK, most)
    best = np.empty(0, np.int64)
    for low in range(0, size, max(step, 1)):
        pages = np.concatenate((best, low + np.flatnonzero(ranked.shown[low : low + step])))
        best = pages[np.argsort(-ranked.rank[pages], kind="stable")[:most]]
    return map(int, best)


def _row(ranked: Ranked, page: int) -> dict[str, Any]:
    kind = Kind(int(ranked.files.kind[page]))
    return {
        "url": ranked.files.urls[page],
        "rank": _short(ranked.rank[page]),
        "importance": _short(ranked.files.importance[page]),
        "interest": None if ranked.interest is None else _short(ranked.interest[page]),
        "kind": None if kind is Kind.UNKNOWN else kind.name,
    }


def _short(value: float) -> float:
    """Nine digits that count: the rest is rounding."""
    return float(f"{float(value):.9g}")


def summary(ask: Ask, ranked: Ranked) -> dict[str, Any]:
    """What was ranked, how long it took to converge, and how near the crawl's own importance is."""
    steps = ranked.steps
    head = ranked.files.head
    return {
        "method": ask.method,
        "pages": ranked.files.n,
        "ranked": int(ranked.shown.sum()),
        "links": ranked.files.m if ask.links else None,
        "damping": (head["damping"] if ask.damping is None else ask.damping) if ask.links else None,
        "iterations": len(steps),
        "residual": steps[-1].residual if steps else None,
        "converged": steps[-1].residual <= ask.epsilon if steps else None,
        "plain": head["plain"],
        **(ranked.exchanged or {}),
        **({f"online_{name}": value for name, value in ranked.compared.items()} if ranked.compared else {}),
    }


def sentences(said: dict[str, Any]) -> list[str]:
    """The summary for people."""
    if said["method"] == "opic":
        return [f"{said['pages']:,} pages by the importance that the crawl computed (mean 1)"]
    state = "" if said["converged"] else ", NOT converged: allow more --iterations"
    told = [
        f"{said['ranked']:,} of {said['pages']:,} pages, {said['links']:,} links, damping {said['damping']:g}; "
        f"{said['iterations']} iterations, residual {said['residual'] or 0.0:.2g}{state}"
    ]
    if "workers" in said:
        told.append(f"{said['workers']} workers: {said['rounds']:g} rounds, {said['bytes']:,} bytes exchanged")
    if said.get("online_spearman") is not None:
        told.append(
            f"the crawl's own importance is off by {said['online_error']:.2f} % on average, "
            f"{said['online_error_top10']:.2f} % over the most important tenth; "
            f"rank correlation {said['online_spearman']:.4f}"
            + ("" if said["plain"] else "; its settings ask for another importance than PageRank's")
        )
    return told


def table(found: list[dict[str, Any]]) -> str:
    """Rows for people."""
    beside = "interest" if found and found[0]["interest"] is not None else "importance"
    lines = [f"{'rank':>10}  {beside:>10}  kind   url"]
    lines += [f"{row['rank']:10.4g}  {row[beside]:10.4g}  {row['kind'] or '-':5}  {row['url']}" for row in found]
    return "\n".join(lines)
