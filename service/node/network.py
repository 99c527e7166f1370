"""The seam to the other nodes of a crawl: by which bus a partition posts, and which partitions are here.

A node alone has all partitions and one bus; several nodes come with the room above (service/cluster).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from xyro.wire.bus import Bus

if TYPE_CHECKING:
    from xyro.configs.schema import Settings
    from xyro.server_floors import AddressClaims


class NodeNetwork(Protocol):
    """A node's place among the nodes of its crawl."""

    @property
    def number(self) -> int:
        """The number of this node: answers to its requests come to `topics.answers(number)`."""

    @property
    def nodes(self) -> int:
        """Number of nodes that read the web, this one included."""

    @property
    def turns(self) -> AddressClaims | None:
        """Turns at addresses that other nodes read, too."""

    @property
    def stood_still(self) -> Callable[[], bool]:
        """Tells whether this process stood still, and does not know yet whether another one has taken its place."""

    @property
    def commanded(self) -> list[Callable[[int], None]]:
        """Told of each partition here for which a command or URLs came from another node."""

    def agreed(self, settings: Settings) -> Settings:
        """The settings, with those of the whole crawl in place of a node's own."""

    @property
    def bus(self) -> Bus:
        """The bus of the node itself."""

    def sender(self, partition: int) -> Bus:
        """The bus by which a partition posts."""

    def opened(self, partition: int) -> None:
        """A partition takes messages here from now on."""

    def closed(self, partition: int) -> None:
        """It takes none any more."""


class LoneNode(Struct, frozen=True):
    """The network of a crawl in one process."""

    bus: Bus
    number: int = 0
    nodes: int = 1
    turns: None = None
    stood_still: Callable[[], bool] = bool
    """never: there is nobody else"""
    commanded: list[Callable[[int], None]] = []

    def agreed(self, settings: Settings) -> Settings:
        """There is nobody to agree with."""
        return settings

    def sender(self, partition: int) -> Bus:
        """The one bus."""
        return self.bus

    def opened(self, partition: int) -> None:
        """All partitions are here."""

    def closed(self, partition: int) -> None:
        """Until the process ends."""
