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
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=len(a) + len(b) > 4 * AROUND * 100)
    for kind, a1, a2, b1, b2 in matcher.get_opcodes():
        if kind != "equal":
            yield {
                "before": " ".join(a[max(a1 - AROUND, 0) : a1]),
                "removed": " ".join(a[a1:a2]),
                "added": " ".join(b[b1:b2]),
                "after": " ".join(a[a2 : a2 + AROUND]),
            }


def diff_line(change: dict[str, Any]) -> str:
    """A change for people: `before [-removed-] {+added+} after`."""
    parts = [
        change["before"],
        f"[-{change['removed']}-]" if change["removed"] else "",
        f"{{+{change['added']}+}}" if change["added"] else "",
        change["after"],
    ]
    return " ".join(filter(None, parts))
