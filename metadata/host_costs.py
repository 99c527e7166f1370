"""Counts what the reads of each host cost: requests, bytes, seconds."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from xyro.metadata import rows
from xyro.wire.errors import MachineError

_COST = struct.Struct("<QQd")
"""requests, bytes, seconds"""


class HostCost(NamedTuple):
    """Costs of the reads of a host's pages. Those of its robots.txt are not among them."""

    requests: int = 0
    bytes: int = 0
    """received: heads and bodies, as coded on their way"""
    seconds: float = 0.0
    """from the beginning of each request to the end of its answer, or failure"""


class HostCosts:
    """Costs by the number of the host, 20 bytes each. The rows that `changes` yields belong into the commit group."""

    def __init__(self) -> None:
        self._requests, self._bytes, self._seconds = array("I"), array("Q"), array("d")
        self._changed: set[int] = set()

    def add(self, host: int, received: int, seconds: float) -> None:
        """A request was answered, or failed."""
        if host >= len(self._seconds):
            self._reach(host + 1)
        self._requests[host] += 1
        self._bytes[host] += received
        self._seconds[host] += seconds
        self._changed.add(host)

    def of_host(self, host: int) -> HostCost:
        """The cost of a host since it is known."""
        if host >= len(self._seconds):
            return HostCost()
        return HostCost(self._requests[host], self._bytes[host], self._seconds[host])

    def changes(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of the rows to store."""
        while self._changed:
            host = self._changed.pop()
            yield rows.COST.key(host), _COST.pack(*self.of_host(host))

    def load(self, stored: Iterable[tuple[bytes, bytes]], hosts: int) -> None:
        """Go on from the stored rows. hosts: how many there are. MachineError: damaged."""
        for key, value in stored:
            host = rows.COST.split(key)
            if host >= hosts or len(value) != _COST.size:
                raise MachineError(f"damaged store: {key!r} is no cost of a host: run `xyro audit`, restore a copy")
            self._reach(host + 1)
            self._requests[host], self._bytes[host], self._seconds[host] = _COST.unpack(value)

    def _reach(self, count: int) -> None:
        if (more := count - len(self._seconds)) > 0:
            more = max(more, len(self._seconds))
            for column in (self._requests, self._bytes, self._seconds):
                column.frombytes(bytes(more * column.itemsize))
