"""Explains when an unread page is read: its score among the unread pages, part by part (frontier/discovery.py)."""

from __future__ import annotations

from typing import Any

from xyro.frontier.discovery import ScoreParts
from xyro.metadata.hosts import QUERY_ORDERS
from xyro.metadata.states import LEASED, State
from xyro.service.views.views import View
from xyro.wire.ids import LocalPage


def score_parts(view: View, page: LocalPage) -> ScoreParts | None:
    """The score of a page that waits to be read for the first time; None for any other."""
    waits = view.state[page] == State.UNREAD and not view.flags[page] & LEASED
    return view.frontier.scheduler.discovery.explain(page) if waits else None


def score_fields(parts: ScoreParts | None) -> dict[str, Any]:
    """`score` of an explanation: the parts by name, null where there is none."""
    return {"score": None if parts is None else {name: _short(value) for name, value in parts._asdict().items()}}


def score_sentences(parts: ScoreParts | None) -> list[str]:
    """Tell the score and its parts; nothing for a page that has none."""
    if parts is None:
        return []
    weight = f"{parts.weight} x " if parts.weight != 1 else ""
    cited = f" (counted {parts.weight} times, for a page of another host links to it)" if weight else ""
    return [
        f"Unread pages are read by score, the greatest first. Its score is {parts.score:.3g} = ({weight}"
        f"{parts.linked:.3g} + {parts.floor:.3g}) / sqrt((1 + {parts.folder_orders}/8) (1 + {parts.host_orders})): "
        f"{parts.linked:.3g} pages' worth of cash came over links{cited}, {parts.floor:.3g} count for every page; "
        f"unread pages of its folder got {parts.folder_orders:,} orders so far (of a path with a query each counts as "
        f"{QUERY_ORDERS}), those of its host {parts.host_orders:,}."
    ]


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.6g}")
