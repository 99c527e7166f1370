"""Clusters: sets of pages that are refreshed together, on one due date (P1 section 6: pages of a cluster).

To its readers a cluster is one document: stale as soon as one of its pages is. So it has the sum R of its pages'
importances and the sum L of their change rates. Reading it costs n reads: for any penalty f, R f(L, t) against n / t
reads a second is what n pages of importance R / n and rate L would be. That is what `joint` makes of each member, and
every policy then gives all of them the same interval, with sum 1 / t still what is really spent.

A round begins with the first member that is read when the cluster is due: all others are called at once, and all get
one next date. A member that is read in between (somebody ordered it) keeps the date of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from xyro.wire.ids import PageId


@dataclass(slots=True)
class _Member:
    importance: float = 0.0
    rate: float = 0.0
    round: int = 0
    """the last one that it was read in"""


class Aligned(NamedTuple):
    """The next read of a member (seconds since 1970), and who is to be read with it now."""

    due: int
    call: tuple[PageId, ...]


@dataclass(slots=True)
class Cluster:
    """Members are page ids. Always holds: the sums are those of the members that were read."""

    name: str
    window: float
    """seconds within which all are to be read"""
    members: dict[PageId, _Member] = field(default_factory=dict)
    importance: float = 0.0
    rate: float = 0.0
    round: int = 0
    due: int = 0
    first: float = 0.0
    last: float = 0.0
    late_rounds: int = 0
    """rounds that took longer than the window, or never became whole"""
    worst: float = 0.0
    """the largest spread of a whole round, seconds"""
    weighed: int = 0
    """members that count in the sums"""

    def join(self, page: PageId) -> None:
        """A page that belongs; it is weighed when it is read."""
        self.members.setdefault(page, _Member())

    def leave(self, page: PageId) -> None:
        """The page is out of the crawl for good."""
        member = self.members.pop(page, None)
        if member is not None and member.rate:
            self.importance -= member.importance
            self.rate -= member.rate
            self.weighed -= 1

    def joint(self, page: PageId, importance: float, rate: float) -> tuple[float, float]:
        """(importance, rate) by which a member that was just read is dated: its share of the cluster's."""
        member = self.members[page]
        self.weighed += (rate > 0.0) - (member.rate > 0.0)
        if rate > 0.0 or member.rate > 0.0:
            self.importance += (importance if rate > 0.0 else 0.0) - (member.importance if member.rate > 0.0 else 0.0)
            self.rate += rate - member.rate
        member.importance, member.rate = importance, rate
        return self.importance / max(self.weighed, 1), self.rate

    def share(self, page: PageId) -> tuple[float, float]:
        """(importance, rate) of a member, its own."""
        member = self.members[page]
        return member.importance, member.rate

    def read(self, page: PageId, now: float, due: int) -> Aligned:
        """A member was read; `due`: the date that the policy gives it."""
        member = self.members[page]
        begins = not self.round or now >= self.due or (not self.due and member.round == self.round)
        if begins:
            self._close()
            self.round, self.first, self.last, self.due = self.round + 1, now, now, due
        elif member.round != self.round:
            self.last = now
        member.round = self.round
        call = tuple(other for other in self.members if other != page) if begins else ()
        return Aligned(self.due, call)

    def _close(self) -> None:
        """The round before is over: was it whole, and within the window?"""
        if self.round:
            self.late_rounds += not self.whole or self.spread > self.window
            self.worst = max(self.worst, self.spread if self.whole else 0.0)

    @property
    def whole(self) -> bool:
        """Every member was read in this round."""
        return all(member.round == self.round for member in self.members.values())

    @property
    def spread(self) -> float:
        """Seconds between the first and the last read of this round."""
        return self.last - self.first

    def report(self) -> dict[str, object]:
        """For people."""
        return {
            "name": self.name,
            "pages": len(self.members),
            "importance": round(self.importance, 4),
            "change_rate": round(self.rate, 6),
            "due": self.due or None,
            "window_s": self.window,
            "spread_s": round(self.spread, 3),
            "whole": self.whole and bool(self.round),
            "late_rounds": self.late_rounds,
            "worst_spread_s": round(self.worst, 3),
        }

    def dump(self) -> list[float]:
        """Return the state that the pages' rows do not hold."""
        return [self.round, self.due, self.first, self.last, self.late_rounds, self.worst]

    def load(self, state: list[float], read: dict[PageId, tuple[float, float, float]]) -> None:
        """After a restart. `read`: members that were read -> (importance, rate, last read in seconds since 1970)."""
        self.round, self.due, self.late_rounds = int(state[0]), int(state[1]), int(state[4])
        self.first, self.last, self.worst = state[2], state[3], state[5]
        for page, (importance, rate, last_read) in read.items():
            self.join(page)
            self.restore(page, importance, rate, last_read)

    def restore(self, page: PageId, importance: float, rate: float, last_read: float) -> None:
        """A member was read in an earlier life, at `last_read`."""
        self.joint(page, importance, rate)
        self.members[page].round = self.round if last_read >= int(self.first) else self.round - 1
