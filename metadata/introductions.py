"""Keeps the credit of registrable domains for hosts that nobody knew."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator

from xyro.metadata import rows

_DOMAIN = struct.Struct("<QII")
"""credit, pages read, hosts introduced"""
GRANT = 131_072
"""new hosts that the domain of a seed may bring in, with all that these bring in"""
PRICE = 8
"""pages of a domain that have to be read for one new host"""
HERITAGE = 64 * PRICE
"""credit that a domain hands to each host that it introduces, at most a fourth of what it has"""


class Introductions:
    """Credit of registrable domains for hosts that nobody knew: what it costs that a link leads to one.

    A domain that a person names is granted credit, and pages of any domain earn some when they are read first. It pays
    PRICE for each new host that its links bring in, and hands a part of the rest to it. So credit is never made by
    introducing: all hosts that a farm brings in, however deep, cost what was handed to the domain that led to it, and
    it runs dry by itself, unless there are PRICE pages to be read for each of its hosts.
    """

    def __init__(self) -> None:
        self.grant = GRANT * PRICE
        self.numbers: dict[str, int] = {}
        """of domains"""
        self._credit, self._reads, self._introduced = array("Q"), array("I"), array("I")
        self._changed: dict[str, None] = {}

    def set_grant(self, hosts: int) -> None:
        """Grant the domains of seeds credit for so many new hosts, from now on."""
        self.grant = PRICE * hosts

    def _number(self, domain: str, credit: int) -> int:
        """The number of a domain, which begins with this credit."""
        number = self.numbers.get(domain)
        if number is None:
            number = self.numbers[domain] = len(self.numbers)
            for column, value in ((self._credit, credit), (self._reads, 0), (self._introduced, 0)):
                column.append(value)
        self._changed[domain] = None
        return number

    def found(self, domain: str) -> None:
        """A person names a page of the domain."""
        number = self._number(domain, self.grant)
        self._credit[number] = max(self._credit[number], self.grant)

    def hand_over(self, domain: str, credit: int) -> None:
        """The domain inherits credit of a domain that introduced a host of it."""
        self._credit[self._number(domain, 0)] += credit

    def count_read(self, domain: str) -> None:
        """A page of the domain was read for the first time."""
        number = self._number(domain, self.grant)
        self._credit[number] += 1
        self._reads[number] += 1

    def introduce(self, domain: str) -> int:
        """A link of the domain brings in a new host: the credit to hand over to that, -1 where there is too little."""
        number = self._number(domain, self.grant)
        credit = self._credit[number] - PRICE
        if credit < 0:
            return -1
        heritage = min(HERITAGE, credit >> 2)
        self._credit[number] = credit - heritage
        self._introduced[number] += 1
        return heritage

    def may_introduce(self, domain: str) -> bool:
        """Tell whether the domain has credit for one more host."""
        return self.state(domain)[0] >= PRICE

    def state(self, domain: str) -> tuple[int, int, int]:
        """Credit of a domain, its pages that were read, and the hosts that it introduced."""
        number = self.numbers.get(domain)
        if number is None:
            return self.grant, 0, 0
        return self._credit[number], self._reads[number], self._introduced[number]

    def changes(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of the rows to store."""
        while self._changed:
            domain, _ = self._changed.popitem()
            yield rows.DOMAIN.key(domain), _DOMAIN.pack(*self.state(domain))

    def load(self, stored: Iterable[tuple[bytes, bytes]]) -> None:
        """Go on from the stored rows."""
        for number, (key, value) in enumerate(stored):
            self.numbers[rows.DOMAIN.split(key)] = number
            for column, figure in zip(
                (self._credit, self._reads, self._introduced), _DOMAIN.unpack(value), strict=True
            ):
                column.append(figure)
