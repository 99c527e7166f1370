"""Uses of what is read that a site may refuse by Content-Signal in its robots.txt, and that a crawl may be for.

search: an index that shows where a page is; ai-input: what a model is given to answer with; ai-train: what it learns
from. Messages and rows carry those that are refused as a number: one bit for each, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

USES: Final = ("search", "ai-input", "ai-train")
SEARCH: Final = 1
ALL_USES: Final = (1 << len(USES)) - 1


def bits(names: Iterable[str]) -> int:
    """The number for some uses."""
    return sum(1 << USES.index(name) for name in set(names))


def names_of(uses: int) -> list[str]:
    """The uses of a number."""
    return [name for place, name in enumerate(USES) if uses >> place & 1]


def signals(uses: int) -> str:
    """Refused uses as Content-Signal writes them; empty for none."""
    return ", ".join(f"{name}=no" for name in names_of(uses))
