"""Slots of the pool: which hosts may have one more, and how long we are patient with each."""

from __future__ import annotations

from collections.abc import Iterable

from xyro.fetch_queue import (
    BEST,
    DEBTOR,
    FAILURE,
    KINDS,
    NOTHING,
    PROVEN,
    REMEMBERED,
    TRIED,
    UNKNOWN,
    WORST,
    FetchQueue,
    charged,
    kind_of,
)
from xyro.politeness import Politeness
from xyro.wire.clock import Clock

LEAST_SHARE = 1 / 8
"""of the slots, for unknown hosts that all fail"""
FEWEST = 2
"""slots for unknown hosts, however few there are in all: else a single silent one would hold up all others"""
MOST_SHARE = 7 / 8
"""of the slots, for unknown hosts that all answer"""
WEIGHT = 1 / 32
"""of one host in the mean success of its kind"""
LEAST_PATIENCE = 2 / 15
"""of every deadline, at the first try: 2 s for a first byte. Half a second more than the slowest of a hundred answers
of the public web takes"""


class SlotShares:
    """The slots of one pool. `in_flight`: those taken, which the pool counts.

    A host that accepts a connection and stays silent, or drips, costs a slot for as long as we are patient, and there
    may be more such hosts than slots. So a host has a standing, answers in WORTH seconds of slot: one more for each
    page that is answered (whatever the status), and less for the seconds that it took, those of a read under way as
    they pass. A failure costs FAILURE answers of what a newcomer has: a host that answers some pages at once and then
    drips, again and again, stays in debt until it has answered more than it let us wait.

        standing = charged(standing + 1, seconds)                NOTHING at first; at most BEST
        standing = min(standing, NOTHING) - FAILURE              after a failure; at least WORST

        proven      PROVEN_FROM on: such hosts share all slots
        tried       TRIED_FROM on: those slots that the unknown may have, and half of the others
        unknown     it never answered a page, or slowly: these share, with the debtors, the least share of the slots,
                    robots.txt included, while they fail, and up to MOST_SHARE of all slots while they answer
        debtor      below UNKNOWN_FROM, it failed or took more than it gave: half of the least share while debtors fail
                    again, and up to as much as the unknown while they pay their debts

    While all slots that a host may have are taken, patience with it shrinks: deadlines become shorter and the least
    throughput of a body higher, by as many times as hosts of its kind, and better ones, wait for each slot; it is the
    least one where its kind holds more than its slots and a better host waits. The first try is the shortest, and each
    failure in a row doubles it: an honest host that is slow is read when there is room, or later.
    """

    def __init__(
        self,
        queue: FetchQueue,
        politeness: Politeness,
        clock: Clock,
        concurrency: int,
        least: float = LEAST_SHARE,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency: at least 1, not {concurrency}")
        self.concurrency = concurrency
        self.in_flight = 0
        self.kind_slots = [0] * KINDS
        """slots that the hosts of each kind hold"""
        self.success = [0.5, 0.5]
        """means: of the last ends of debts (1 = paid, 0 = failed again), of the unknown hosts' last contacts (1 =
        answered, 0 = not)"""
        self.open = DEBTOR
        """hosts of this kind, and better ones, may have one more slot"""
        self._least = least
        self._queue = queue
        self._politeness = politeness
        self._clock = clock
        self._under_way: dict[str, tuple[int, float]] = {}
        """host -> its kind by now, and since when its read is under way (monotonic)"""

    def places(self, kind: int) -> int:
        """Most slots for hosts of a kind and lesser ones, now."""
        if kind == PROVEN:
            return self.concurrency
        unknown = self._earned(UNKNOWN, self._least)
        if kind == DEBTOR:
            return min(unknown, self._earned(DEBTOR, self._least / 2))
        return unknown if kind == UNKNOWN else unknown + max(self.concurrency - unknown, 0) // 2

    def enter(self, host: str, now: float) -> None:
        """`host` takes a slot."""
        kind = self._queue.kind(host)
        self._under_way[host] = kind, now
        self._hold(kind, 1)

    @property
    def hosts(self) -> Iterable[str]:
        """Hosts that are being read now."""
        return self._under_way.keys()

    def leave(self, host: str) -> None:
        """`host` gives its slot back."""
        kind, _ = self._under_way.pop(host)
        self._hold(kind, -1)

    def answered(self, host: str, seconds: float) -> None:
        """A page of `host` was answered, in so many seconds; its robots.txt alone says nothing."""
        before = self._queue.standing.get(host, NOTHING)
        after = min(BEST, charged(before + 1.0, seconds))
        if (kind := kind_of(before)) == UNKNOWN or kind < kind_of(after):
            self._learn(kind, 1.0)
        self._stand(host, after)

    def failed(self, host: str) -> None:
        """A read of `host` was not answered, or not in time: it is in debt from now on."""
        before = self._queue.standing.get(host, NOTHING)
        self._learn(kind_of(before), 0.0)
        self._stand(host, max(WORST, min(before, NOTHING) - FAILURE))

    def patience(self, host: str) -> float:
        """Share of every deadline that `host` is allowed now."""
        kind = self._kind_by_now(host)
        allowed, total, waiting = 1.0, sum(self.kind_slots[:kind]), 0
        for each in range(kind, KINDS):
            total += self.kind_slots[each]
            waiting += self._queue.lined(each)
            if total >= (places := self.places(each)):
                allowed = min(allowed, places / (places + waiting))
                if each > kind and self._queue.lined(each) and sum(self.kind_slots[: kind + 1]) > self.places(kind):
                    allowed = 0.0
        if allowed == 1.0:
            return 1.0
        least = LEAST_PATIENCE * 2.0 ** min(self._politeness.failures(host), 8)
        return min(1.0, max(least, allowed))

    def _earned(self, kind: int, least: float) -> int:
        """Slots for a kind, by its success."""
        return max(FEWEST, int(self.concurrency * (least + max(0.0, MOST_SHARE - least) * self.success[kind])))

    def _learn(self, kind: int, success: float) -> None:
        if kind <= UNKNOWN:
            self.success[kind] += WEIGHT * (success - self.success[kind])

    def _stand(self, host: str, standing: float) -> None:
        self._queue.standing[host] = standing
        if len(self._queue.standing) > REMEMBERED:
            del self._queue.standing[next(iter(self._queue.standing))]

    def _hold(self, kind: int, slots: int) -> None:
        self.kind_slots[kind] += slots
        self.open, total = PROVEN, sum(self.kind_slots)
        for each in (TRIED, UNKNOWN, DEBTOR):
            total -= self.kind_slots[each + 1]
            if total >= self.places(each):
                return
            self.open = each

    def _kind_by_now(self, host: str) -> int:
        """The kind of a host; of one that is being read by what this has cost until now, too."""
        if host not in self._under_way:
            return self._queue.kind(host)
        kind, began = self._under_way[host]
        seconds = self._clock.monotonic() - began
        if (less := min(kind, kind_of(charged(self._queue.standing.get(host, NOTHING), seconds)))) < kind:
            self._under_way[host] = less, began
            self._hold(kind, -1)
            self._hold(less, 1)
        return less
