"""Formats a ranking for people and programs: its rows and its summary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from xyro.plugins.rank.ranking import Ranking, RankRequest
from xyro.service.views.text_tables import url_lines
from xyro.wire.messages import Kind
from xyro.wire.text import counted

CHUNK = 1 << 16


def rows(ranked: Ranking, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Pages by falling rank, `most` of them or all: columns `rank` of xyro.service.views.export."""
    for page in _best(ranked, limit):
        yield _row(ranked, page)


def _best(ranked: Ranking, limit: int | None) -> Iterator[int]:
    """Equal ranks stand in the order of their numbers."""
    size = ranked.rank.size
    step = size if limit is None else max(CHUNK, limit)
    best = np.empty(0, np.int64)
    for low in range(0, size, max(step, 1)):
        pages = np.concatenate((best, low + np.flatnonzero(ranked.shown[low : low + step])))
        best = pages[np.argsort(-ranked.rank[pages], kind="stable")[:limit]]
    return map(int, best)


def _row(ranked: Ranking, place: int) -> dict[str, Any]:
    kind, stale = Kind(int(ranked.files.kind[place])), float(ranked.files.stale[place])
    return {
        "url": ranked.files.urls[place],
        "rank": _short(ranked.rank[place]),
        "importance": _short(ranked.files.importance[place]),
        "interest": None if ranked.interest is None else _short(ranked.interest[place]),
        "kind": None if kind is Kind.UNKNOWN else kind.name,
        "stale": None if math.isnan(stale) else round(stale, 6),
    }


def _short(value: float) -> float:
    """Nine digits that count: the rest is rounding."""
    return float(f"{float(value):.9g}")


def summary(request: RankRequest, ranked: Ranking) -> dict[str, Any]:
    """Sum up a ranking: its method, how it converged, and how near the crawl's own importance is."""
    steps = ranked.steps
    head = ranked.files.head
    return {
        "method": request.method,
        "pages": ranked.files.n,
        "ranked": int(ranked.shown.sum()),
        "links": ranked.files.m if request.links else None,
        "damping": (head["damping"] if request.damping is None else request.damping) if request.links else None,
        "iterations": len(steps),
        "residual": steps[-1].residual if steps else None,
        "converged": steps[-1].residual <= request.epsilon if steps else None,
        "plain": head["plain"],
        **(ranked.exchanged or {}),
        **({f"online_{name}": value for name, value in ranked.compared.items()} if ranked.compared else {}),
    }


def sentences(fields: dict[str, Any]) -> list[str]:
    """The summary for people."""
    if fields["method"] == "opic":
        return [f"{counted(fields['pages'], 'page')} by the importance that the crawl computed (mean 1)"]
    state = "" if fields["converged"] else ", NOT converged: allow more --iterations"
    text = [
        f"{fields['ranked']:,} of {fields['pages']:,} pages, {fields['links']:,} links, damping {fields['damping']:g}; "
        f"{counted(fields['iterations'], 'iteration')}, residual {fields['residual'] or 0.0:.2g}{state}"
    ]
    if "workers" in fields:
        text.append(f"{fields['workers']} workers: {fields['rounds']:g} rounds, {fields['bytes']:,} bytes exchanged")
    if fields.get("online_spearman") is not None:
        text.append(
            f"the crawl's own importance is off by {fields['online_error']:.2f} % on average, "
            f"{fields['online_error_top10']:.2f} % over the most important tenth; "
            f"rank correlation {fields['online_spearman']:.4f}"
            + ("" if fields["plain"] else "; its settings ask for another importance than PageRank's")
        )
    return text


def table(found: list[dict[str, Any]], width: int = 0) -> str:
    """Rows for people; width: columns of the terminal, 0 = no bound."""
    beside = "interest" if found and found[0]["interest"] is not None else "importance"
    lines = [f"{'rank':>10}  {beside:>10}  kind   url"]
    for row in found:
        line = f"{row['rank']:10.4g}  {row[beside]:10.4g}  {row['kind'] or '-':5}  "
        lines += url_lines(line, row["url"], width)
    return "\n".join(lines)
