"""Is a bounded run over? Decided from rounds of counts, each of all partitions, none of them at one moment.

Each partition says whether it is idle, and how many messages it sent to others and received from them. What is under
way is in neither sum of both, and whatever arrives changes one. So the run is over when in two rounds, one after the
other, all are idle, as many were received as sent, and no count differs (Mattern's four counters, 1987).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec


class PartitionTally(msgspec.Struct, frozen=True):
    """One partition's line of a round (ReadQuota.counts)."""

    run: int
    reads: int
    reads_total: int
    pages: int
    sent: int
    received: int
    granted: int
    """reads that it may make"""
    shared: int
    """of the home partition: reads that all may make, as it knows; else 0"""
    charged: int
    """of them: made, under way, or lost with a process"""
    idle: bool
    """nothing is under way from it or to it"""
    exhausted: bool
    """it has nothing to read"""
    hungry: bool
    """it has pages to read, and no read left"""
    over: bool
    """the time of the run has passed"""
    challenged: bool
    errors: dict[str, int]
    bytes: int


class Round(msgspec.Struct, frozen=True):
    """The counts of all partitions that answered."""

    parts: dict[int, PartitionTally]
    missing: list[int]
    """partitions that did not answer"""

    @property
    def reads(self) -> int:
        return sum(part.reads for part in self.parts.values())

    @property
    def pages(self) -> int:
        return sum(part.pages for part in self.parts.values())

    @property
    def over(self) -> bool:
        """The time of the run has passed, by the clock of who asked."""
        return any(part.over for part in self.parts.values())

    def sums(self) -> dict[str, Any]:
        """The fields of a closing report that counts give."""
        parts = self.parts.values()
        errors = sum((Counter(part.errors) for part in parts), Counter[str]())
        return {
            "pages_read": self.reads,
            "pages_known": self.pages,
            "errors": dict(sorted(errors.items())),
            "bytes": sum(part.bytes for part in parts),
            "reads_total": sum(part.reads_total for part in parts),
        }


def run_end(before: Round | None, now: Round, run: int, pages: int) -> str:
    """The reason why the run of this number, bounded by `pages` reads (0: not), is over: 'max-pages' | 'max-seconds' |
    'complete' | 'challenged'; '' while it is not, or nobody can tell."""
    if now.missing or before is None or any(part.run != run for part in now.parts.values()):
        return ""
    if now.over:
        return "max-seconds" if _reads(before) == _reads(now) else ""
    if not (_at_rest(now, pages) and _at_rest(before, pages) and _moves(before) == _moves(now)):
        return ""
    parts = now.parts.values()
    if pages and sum(part.charged for part in parts) >= pages:
        return "max-pages"
    return "challenged" if any(part.challenged for part in parts) else "complete"


def _at_rest(found: Round, pages: int) -> bool:
    """All are idle, nothing is on its way, and all are exhausted, or every read of the bound is spent."""
    parts = found.parts.values()
    sent, received = sum(part.sent for part in parts), sum(part.received for part in parts)
    granted, shared = sum(part.granted for part in parts), sum(part.shared for part in parts)
    if not all(part.idle for part in parts) or sent != received or (pages and granted != shared):
        return False
    spent = pages > 0 and sum(part.charged for part in parts) >= pages
    return spent or all(part.exhausted for part in parts)


def _reads(found: Round) -> dict[int, int]:
    return {number: part.reads for number, part in found.parts.items()}


def _moves(found: Round) -> dict[int, tuple[int, ...]]:
    return {
        number: (part.reads, part.pages, part.sent, part.received, part.granted) for number, part in found.parts.items()
    }
