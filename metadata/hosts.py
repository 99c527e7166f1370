"""Hosts of a partition: name <-> number, how many of their pages wait or are out, and what politeness must remember.

A host is an authority as canonical URLs write it (host, and the port where it is not the scheme's own), so http and
https of one host share politeness. Numbers are dense; the counters are numpy columns indexed by them, so a plan can ask
"has the host of each of these pages room?" in one step.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.rows import HostMask, HostRow
from xyro.wire.urls import host_of, site_of

FEW = 1024
"""rows of politeness that are kept without asking whether they still matter"""
LONGEST = 86_400.0
"""seconds: no back-off and no Retry-After leaves a host alone for longer (xyro/politeness.py)"""


class Hosts:
    """Always holds: waiting[h] + leased[h] = pages of h that are to be read now or are being read (never below 0);
    exploring[h] <= leased[h]."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []
        self.waiting: NDArray[np.int32] = np.zeros(64, np.int32)
        """unread pages in scope that no order has taken, by host"""
        self.leased: NDArray[np.int32] = np.zeros(64, np.int32)
        """orders that are out, by host"""
        self.exploring: NDArray[np.int32] = np.zeros(64, np.int32)
        """those of them that are for unread pages"""
        self.open: NDArray[np.bool_] = np.ones(64, np.bool_)
        """not paused and not blocked by a person"""
        self.barren: NDArray[np.bool_] = np.zeros(64, np.bool_)
        """all unread pages that were looked at last are of poor standing, by host; not stored"""
        self.clocks: dict[int, HostRow] = {}
        """hosts with politeness to remember (a later next_at, failures) or a hold; those it is over for are dropped
        whenever their number has doubled"""
        self._max_clocks = FEW
        self.trust: dict[int, bytes] = {}
        """what claims of the host were worth, packed by refresh/trust.py: of hosts with settled claims only"""
        self.rates: dict[int, bytes] = {}
        """change rates of its pages, packed by refresh/change.py: of hosts with pages that were read often only"""
        self.masks: dict[int, HostMask] = {}
        """hosts that showed answers that are not their pages"""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def revisiting(self) -> NDArray[np.int32]:
        """Orders that are out for pages that were read before, by host; a copy."""
        return self.leased - self.exploring

    def number(self, name: str) -> int:
        """The host's number; a new name gets the next one, and its row must be stored."""
        found = self.numbers.get(name)
        if found is not None:
            return found
        number = self.numbers[name] = len(self.names)
        self.names.append(name)
        if number >= len(self.waiting):
            self.waiting = np.concatenate([self.waiting, np.zeros_like(self.waiting)])
            self.leased = np.concatenate([self.leased, np.zeros_like(self.leased)])
            self.exploring = np.concatenate([self.exploring, np.zeros_like(self.exploring)])
            self.open = np.concatenate([self.open, np.ones_like(self.open)])
            self.barren = np.concatenate([self.barren, np.zeros_like(self.barren)])
        return number

    def domain(self, number: int) -> str:
        """The registrable domain of a host."""
        return site_of(host_of(f"http://{self.names[number]}/"))

    def row(self, number: int) -> HostRow:
        """Return the row to store of the host."""
        row = self.clocks.get(number) or HostRow(name=self.names[number])
        trust, rates, mask = self.trust.get(number, b""), self.rates.get(number, b""), self.masks.get(number)
        if not trust and not rates and mask is None:
            return row
        return msgspec.structs.replace(row, trust=trust, rates=rates, masks=() if mask is None else (mask,))

    def remember(self, number: int, next_at: float, failures: int, now: float) -> bool:
        """Note a host's politeness (next_at 0: it may be read at once); True where its row must be stored."""
        old = self.clocks.get(number)
        if old is None and not failures and not next_at:
            return False
        hold = old.hold if old else ""
        self.clocks[number] = HostRow(name=self.names[number], next_at=next_at, failures=failures, hold=hold)
        if len(self.clocks) > self._max_clocks:
            self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        """Drop the rows that say nothing any more; the stored ones say it of a time that is over."""
        self.clocks = {
            number: row for number, row in self.clocks.items() if row.failures or row.hold or row.next_at > now
        }
        self._max_clocks = max(FEW, 2 * len(self.clocks))

    def rewind(self, now: float) -> None:
        """The clock may have been set back: what it said of a time that is far ahead holds for LONGEST, no longer."""
        for number, row in self.clocks.items():
            if row.next_at > now + LONGEST:
                self.clocks[number] = msgspec.structs.replace(row, next_at=now + LONGEST)

    def hold(self, number: int, hold: str) -> None:
        """held: '' | paused | blocked."""
        old = self.row(number)
        self.clocks[number] = HostRow(name=old.name, next_at=old.next_at, failures=old.failures, hold=hold)
        self.open[number] = not hold

    def load(self, number: int, row: HostRow) -> None:
        """Take over a stored row; rows come in the order of their numbers."""
        if self.number(row.name) != number:
            raise ValueError(f"host {number}: {row.name} is stored out of order")
        if row.trust:
            self.trust[number] = row.trust
        if row.rates:
            self.rates[number] = row.rates
        if row.masks:
            self.masks[number] = row.masks[0]
        if row.next_at or row.failures or row.hold:
            self.clocks[number] = row
            self.open[number] = not row.hold

    def stored(self, number: int) -> tuple[bytes, bytes]:
        """Key and value of the host's row."""
        return rows.HOST.key(number), rows.pack(self.row(number))
