"""The seam by which the life cycle of a process takes part in a cluster; the room above (service/cluster) fills it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from xyro.configs.schema import Settings
    from xyro.guard import Guard
    from xyro.service.node.data_dir import DataDir
    from xyro.service.node.network import NodeNetwork
    from xyro.service.node.node import Node


class Membership(Protocol):
    """A process's part in a cluster, over its life: the life cycle calls these in their order."""

    def adapt(self, directory: Path, settings: Settings) -> Settings:
        """The settings with those of the cluster in place of defaults, for a directory that is new to it."""

    def open(self, directory: Path, settings: Settings, partitions: int | None) -> DataDir:
        """Found or join the cluster, and open the partitions that are this node's. Before the event loop runs.

        InputError: another crawl or other settings are there, or this directory is no node of it.
        """

    async def connect(self, guard: Guard) -> NodeNetwork:
        """Take part from now on; the guard learns the broker's address."""

    async def serve(self, node: Node, address: tuple[str, int], token: str) -> None:
        """The node has started, and its HTTP interface answers at this address."""

    async def leave(self) -> None:
        """The node is about to stop: nothing is asked of it, and nothing moves, any more."""

    async def close(self, failure: BaseException | None = None) -> None:
        """The node has stopped, by this failure where it is one: the others tell of it."""
