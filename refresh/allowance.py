"""Allowances: actions an hour for each of many names, and for all together; token buckets that forget idle names."""

from __future__ import annotations

HOUR = 3_600.0
MOST_NAMES = 10_000
"""names remembered at once; beyond it those whose bucket is full again are forgotten, then new names are refused"""


class Allowance:
    """`hourly` of each name, at once or spread; `overall` of all. Moments are seconds of the caller's clock.

    Always holds: within any hour a name gets at most twice its hourly allowance (a full bucket and its refill).
    """

    def __init__(self, hourly: float, overall: float) -> None:
        self._hourly = hourly
        self._overall = overall
        self._names: dict[str, tuple[float, float]] = {}
        """name -> (tokens left, as of when)"""
        self._all = (overall, 0.0)

    def __len__(self) -> int:
        return len(self._names)

    def take(self, name: str, amount: float, now: float) -> float:
        """Take `amount` for `name`: 0.0, or the seconds after which to ask again; then nothing was taken."""
        own = self._left(self._names.get(name, (self._hourly, now)), self._hourly, now)
        everyone = self._left(self._all, self._overall, now)
        wait = max(_wait(amount, own, self._hourly), _wait(amount, everyone, self._overall))
        if wait or not self._room(name, now):
            return wait or HOUR
        self._names[name] = own - amount, now
        self._all = everyone - amount, now
        return 0.0

    def _left(self, bucket: tuple[float, float], limit: float, now: float) -> float:
        tokens, then = bucket
        return min(limit, tokens + max(now - then, 0.0) * limit / HOUR)

    def _room(self, name: str, now: float) -> bool:
        if name in self._names or len(self._names) < MOST_NAMES:
            return True
        self._names = {
            name: bucket for name, bucket in self._names.items() if self._left(bucket, self._hourly, now) < self._hourly
        }
        return len(self._names) < MOST_NAMES


def _wait(amount: float, left: float, limit: float) -> float:
    """Seconds until `amount` is there; an hour where it never will be."""
    if amount <= left:
        return 0.0
    return (amount - left) * HOUR / limit if 0.0 < amount <= limit else HOUR
