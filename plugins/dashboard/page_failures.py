"""`xyro log --errors`: the pages whose last order failed, by the class of the failure, each class with samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from xyro.metadata.states import NAMES, State
from xyro.service.views.views import Views
from xyro.wire.ids import local_pages
from xyro.wire.text import counted, middle_cut, stamp

FAILED = (State.ERROR, State.FAILED, State.DEAD, State.DISALLOWED)
SAMPLES = 5
"""pages of a class that are named: those read last"""


def failures(views: Views) -> list[dict[str, Any]]:
    """Rows {"class", "pages", "retried", "samples"}, the most frequent class first; some 10 us a page that failed."""
    found: dict[str, list[tuple[int, bool, str, float | None]]] = {}
    counts: dict[str, int] = {}
    retried: dict[str, int] = {}
    for view in views.views:
        for page in local_pages(np.flatnonzero(np.isin(view.state, FAILED))):
            row, state = view.row(page), State(int(view.state[page]))
            name = row.error or NAMES[state]
            counts[name] = counts.get(name, 0) + 1
            retried[name] = retried.get(name, 0) + (state is State.ERROR)
            best = found.setdefault(name, [])
            if len(best) < SAMPLES or row.last_read > best[-1][0]:
                best.append((row.last_read, state is State.ERROR, view.url(page), view.stale(page, row)))
                best.sort(key=lambda each: -each[0])
                del best[SAMPLES:]
    return [
        {
            "class": name,
            "pages": counts[name],
            "retried": retried[name],
            "samples": [
                {"url": url, "last_read": stamp(last), "retried": again, "stale": stale}
                for last, again, url, stale in found[name]
            ],
        }
        for name in sorted(counts, key=lambda each: -counts[each])
    ]


def merged_failures(parts: Iterable[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of `failures` of several nodes as those of one crawl."""
    found: dict[str, dict[str, Any]] = {}
    for row in (row for part in parts for row in part):
        whole = found.setdefault(row["class"], {"class": row["class"], "pages": 0, "retried": 0, "samples": []})
        whole["pages"] += row["pages"]
        whole["retried"] += row["retried"]
        samples = sorted([*whole["samples"], *row["samples"]], key=lambda each: each["last_read"] or "", reverse=True)
        whole["samples"] = samples[:SAMPLES]
    return sorted(found.values(), key=lambda whole: -whole["pages"])


def failure_lines(rows: Sequence[Mapping[str, Any]], width: int) -> str:
    """Rows for people. width: columns of the terminal, 0 = no bound."""
    if not rows:
        return "no page failed"
    lines = []
    for row in rows:
        again = f", {row['retried']:,} to be tried again" if row["retried"] else ""
        lines.append(f"{row['class']}: {counted(row['pages'], 'page')}{again}")
        lines += [f"    {middle_cut(each['url'], width - 4) if width else each['url']}" for each in row["samples"]]
    return "\n".join(lines)
