"""Names that are being looked up: at most some at a time, so that names whose servers are silent leave slots to hosts
that answer. Pure: moments are monotonic seconds that the caller gives.

A name server that never answers holds a lookup for 12 seconds, and one page may name 65,534 hosts of its domain: with
all 256 slots at these, a crawl would read nothing else for an hour.
"""

from __future__ import annotations

from collections import deque

USUAL = 0.1
"""seconds of a lookup before any was measured"""
WEIGHT = 1 / 32
"""of one lookup in the mean"""
LONGEST_LINE = 60.0
"""seconds after which whoever waits asks again: name servers recover"""
SLOW = 2.0
"""seconds from which on a lookup is slow: one takes a tenth"""
REMEMBERED = 1000
"""slow lookups, the latest"""


class Lookups:
    """`most`: lookups at a time. Those who must wait get turns as far apart as lookups have been ending, so N hosts
    cost one question per turn, not N (as politeness.claim)."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self._under_way = 0
        self._line = 0.0
        self._mean = USUAL
        self._slow: deque[float] = deque(maxlen=REMEMBERED)

    def claim(self, now: float) -> float:
        """Begin a lookup: `now` if that is allowed (then `ended` must follow), else the moment to ask again."""
        if self._under_way < self._limit:
            self._under_way += 1
            return now
        apart = self._mean / self._limit
        self._line = max(min(self._line, now + LONGEST_LINE), now) + apart
        return self._line

    def ended(self, seconds: float, now: float) -> None:
        """A lookup ended, whatever came of it."""
        self._under_way -= 1
        self._mean += WEIGHT * (seconds - self._mean)
        if seconds >= SLOW:
            self._slow.append(now)

    def slow(self, since: float) -> int:
        """Count the slow lookups that ended since a moment."""
        return sum(moment >= since for moment in self._slow)
