"""The services of a node are what it offers to plug-ins; a plug-in is what one adds to a node.

A room above chooses the plug-ins and hands them to the reference wiring (node.py) as a PluginSet. The node builds its
own parts first, then makes each plug-in from its services; it imports none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from xyro.wire.messages import Priority, Submit

if TYPE_CHECKING:  # the child processes of plug-ins import this, and none of what it names
    from xyro.configs.schema import Settings
    from xyro.fetcher import Posted
    from xyro.frontier.frontier import Extension, Frontier
    from xyro.frontier.scope import Scope
    from xyro.service.node.command_sender import CommandSender
    from xyro.service.node.page_lookup import PageLookup
    from xyro.service.node.side_reads import SideReads
    from xyro.wire.clock import Clock


@dataclass(slots=True, eq=False)
class Services:
    """The parts of a node that its plug-ins may use."""

    settings_now: Callable[[], Settings]
    """the settings as they are now: SIGHUP replaces them"""
    clock: Clock
    scope: Scope
    frontiers: Sequence[Frontier]
    """the node's own partitions, to register hooks with; commands change them, `lookup` reads them"""
    lookup: PageLookup
    """single pages, by id or URL"""
    commands: CommandSender
    side_reads: SideReads
    post: Callable[[str, bytes, Mapping[str, str]], Awaitable[Posted]]
    """an HTTP POST (URL, body, headers) through the guarded client"""

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self.settings_now()

    async def submit(self, urls: Iterable[str], priority: Priority = Priority.ORDERED, *, seed: bool = True) -> None:
        """Hand canonical URLs over; return when they are on disk. `seed`: they widen the scope."""
        await self.commands.submit(Submit(tuple(urls), priority, seed))


class Plugin(Protocol):
    """A feature of a node, beside its partitions."""

    def recover(self) -> None:
        """Take up what was stored; all partitions have recovered."""

    async def run(self) -> None:
        """Work until cancelled, or return at once. What it raises ends the crawl."""

    def status(self) -> dict[str, Any]:
        """The fields that it adds to `xyro status`."""


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plug-ins of a crawl."""

    extensions: Callable[[Settings], Sequence[Extension]] = lambda settings: ()
    """those of each partition, from the settings"""
    plugins: Callable[[Services], Sequence[Plugin]] = lambda services: ()
    """those of a node, from its services"""


NO_PLUGINS = PluginSet()
