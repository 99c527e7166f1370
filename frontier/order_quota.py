"""How many orders may be out: of the plan in all, of one host, and of either kind while places are scarce.

The fetch queue is bounded by ORDERS_OUT. Few hosts never notice. Many with long backlogs would fill it, and hosts that
come later, with pages never read among them, would wait until a backlog is gone. So, once half of the places are taken:

    a host     gets the fewer the less is free (dynamic thresholds: Choudhury, Hahne, IEEE/ACM ToN 6(2) 1998). Whoever
               holds more gets none until it has less, so something is always free for a host that has none
    refresh    gets its part by gamma of what is free, while unread pages wait: so gamma holds over all hosts, too
    wanted     of pages that people want (they may hand in a million) WANTED of one host are out, the rest waits in a
               line before it
"""

from __future__ import annotations

from xyro.frontier.leases import Leases
from xyro.metadata.hosts import Hosts

ORDERS_OUT = 50_000
"""most orders out at once, of a partition: about 30 MB"""
PLENTY = 0.5
"""share of the places below which they are scarce"""
WANTED = 1024
"""most orders of a host that people want, while there are places in plenty: half an hour of a polite crawl"""


class OrderQuota:
    """Of one scheduler. Invariant: what is asked here follows from the orders that are out, and nothing else."""

    def __init__(self, leases: Leases, hosts: Hosts, most: int) -> None:
        """most: orders of a host while there are places in plenty (`leases_per_host`)."""
        self._leases = leases
        self._hosts = hosts
        self._most = most
        self._carry = 0.0
        """of a place, that rounding has kept from discovery so far"""

    @property
    def free(self) -> int:
        return ORDERS_OUT - len(self._leases)

    @property
    def per_host(self) -> int:
        """Most orders of a host that the plan may have out now: 1 to `most`."""
        return self._of(self._most)

    @property
    def wanted_per_host(self) -> int:
        """The same of what people want."""
        return self._of(max(WANTED, self._most))

    def _of(self, most: int) -> int:
        return max(1, min(most, int(most * self.free / (PLENTY * ORDERS_OUT))))

    @property
    def scarce(self) -> bool:
        return self.free < PLENTY * ORDERS_OUT

    def room(self, host: int) -> int:
        """Orders that the plan may still give out for a host; below 0 where it got more in better times."""
        return self.per_host - int(self._hosts.leased[host])

    def part(self, room: int, gamma: float) -> int:
        """Of so many free places refresh's, while unread pages wait; gamma: percent for discovery. Over many calls the
        parts are exact, however small the rooms are."""
        kept = room * gamma / 100.0 + self._carry
        self._carry = kept - int(kept)
        return room - int(kept)
