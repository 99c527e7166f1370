"""The difference of two texts by words: what went, what came, with a few words around each."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

AROUND = 6
"""words shown before and after a change"""
WORDS = 20_000
"""of either text: above, lines are compared"""
_WORD = re.compile(r"\S+")


def word_diff(old: str, new: str) -> list[dict[str, Any]]:
    """Changes in order: {"before", "removed", "added", "after"}, each a text."""
    pattern = _WORD if max(len(old), len(new)) < 8 * WORDS else re.compile(r"[^\n]+")
    a, b = pattern.findall(old), pattern.findall(new)
    return list(_changes(a, b))


def _changes(a: list[str], b: list[str]) -> Iterator[dict[str, Any]]:
    head = _alike(a, b)
    tail = _alike(a[: head - 1 if head else None : -1], b[: head - 1 if head else None : -1])
    inner_a, inner_b = a[head : len(a) - tail], b[head : len(b) - tail]
    matcher = difflib.SequenceMatcher(None, inner_a, inner_b, autojunk=len(inner_a) + len(inner_b) > 4 * AROUND * 100)
    for kind, *places in matcher.get_opcodes():
        if kind != "equal":
            a1, a2, b1, b2 = (place + head for place in places)
            yield {
                "before": " ".join(a[max(a1 - AROUND, 0) : a1]),
                "removed": " ".join(a[a1:a2]),
                "added": " ".join(b[b1:b2]),
                "after": " ".join(a[a2 : a2 + AROUND]),
            }


def _alike(a: list[str], b: list[str]) -> int:
    """Count the words at the beginning that both have."""
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def diff_line(change: dict[str, Any]) -> str:
    """A change for people: `before [-removed-] {+added+} after`."""
    parts = [
        change["before"],
        f"[-{change['removed']}-]" if change["removed"] else "",
        f"{{+{change['added']}+}}" if change["added"] else "",
        change["after"],
    ]
    return " ".join(filter(None, parts))
