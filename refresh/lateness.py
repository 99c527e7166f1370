"""Lateness: the cost of promises that are late, as terms beside P1's cost.

The collection's cost at a moment is, per refreshed page,

    cost = sum_i r_i lambda_i age_i / sum_i r_i  +  gamma / n  sum_j h_j

The first term is P1's obsolescence (eq. 16, 22): the changes expected to be missed, weighted by importance r of mean 1.
In the second one j runs over the pages that were promised by a deadline (a publication's, or the notice of a
subscription) and have not been read, h_j is the hours since that deadline, 0 before it, and n the number of refreshed
pages: an hour past a deadline costs as much as gamma more missed changes of a page of mean importance, whoever was
promised the page. gamma is [refresh] late_cost.

So a page past its deadline loses gamma n^-1 an hour whatever its importance, and no read saves more than that of the
one whose deadline comes first: promised pages go before the plan, the earliest deadline first, which keeps every
deadline that can be kept on one server (Jackson 1955) and has the least possible worst lateness. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

HOUR = 3_600.0


class Late(NamedTuple):
    """Promises that are past their deadlines now: how many, and by how many hours in all."""

    pages: int
    hours: float

    def __add__(self, other: object) -> Late:
        """Add the lateness of two partitions."""
        if not isinstance(other, Late):
            return NotImplemented
        return Late(self.pages + other.pages, self.hours + other.hours)


ON_TIME = Late(0, 0.0)


def late(deadlines: Iterable[float], now: float) -> Late:
    """Return the lateness of pages that were promised by these times (seconds) and have not been read."""
    past = [now - deadline for deadline in deadlines if deadline < now]
    return Late(len(past), sum(past) / HOUR)


class Cost(NamedTuple):
    """Changes missed per page, weighted, and what lateness adds in the same unit."""

    missed_changes: float
    publications: float
    subscriptions: float

    @property
    def total(self) -> float:
        return sum(self)


def cost(missed_changes: float, pages: int, gamma: float, publications: Late, subscriptions: Late) -> Cost:
    """missed_changes: importance-weighted mean (refresh/expected.py); pages: refreshed ones; gamma: missed changes that
    an hour past a deadline counts as."""
    share = gamma / max(pages, 1)
    return Cost(missed_changes, share * publications.hours, share * subscriptions.hours)
