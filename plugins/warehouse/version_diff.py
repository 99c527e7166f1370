"""`xyro xml diff`: from one version of a document to another, as edits of its tree (xmldiff), or of its lines.

xmldiff compares every node with every other one that might be its match: seconds for some thousand elements. Both run
in a process that is bounded (query_worker.py), and what is too large for the tree is told as a difference of lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xyro.plugins.warehouse.query_worker import QueryWorker

ELEMENTS = 3_000
"""of either version: above, the tree is not compared"""
BYTES = 4 << 20
"""of either version: above, nothing is compared"""
SECONDS = 10.0
"""CPU that either comparison may take"""


@dataclass(frozen=True, slots=True)
class Version:
    """One side."""

    number: int
    elements: int
    charset: str
    body: bytes


def difference(old: Version, new: Version) -> dict[str, Any]:
    """{"from", "to", "method": xmldiff | text | none, "why": why not a better one, "cut", "lines"}"""
    numbers = {"from": old.number, "to": new.number}
    if old.body == new.body:
        return {**numbers, "method": "none", "why": "the bodies are equal", "cut": False, "lines": []}
    if max(len(old.body), len(new.body)) > BYTES:
        return {**numbers, "method": "none", "why": f"more than {BYTES >> 20} MiB", "cut": False, "lines": []}
    why = ""
    if max(old.elements, new.elements) > ELEMENTS:
        why = f"more than {ELEMENTS:,} elements"
    else:
        answer = _compared("xmldiff", old, new)
        if "error" not in answer:
            return {**numbers, "method": "xmldiff", "why": "", **answer}
        why = f"the comparison of the trees {answer['error']}"
    answer = _compared("text", old, new)
    if "error" in answer:
        return {
            **numbers,
            "method": "none",
            "why": f"{why}; that of the lines {answer['error']}",
            "cut": False,
            "lines": [],
        }
    return {**numbers, "method": "text", "why": why, **answer}


def _compared(method: str, old: Version, new: Version) -> dict[str, Any]:
    with QueryWorker({"job": "difference", "method": method}, SECONDS) as worker:
        return worker.ask([old.body, new.body], charsets=[old.charset, new.charset])
