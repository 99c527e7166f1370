"""Asks for the parts (DTDs, entities) that documents here wait for, of other nodes' partitions by message.

The partition of such a document has asked that partition to read the part (a blocking Submit), which does so unless it
has it; nobody says when it has. So each part is asked for now and then, until it is there or known never to be had.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from xyro.loader.library import StoredPart
from xyro.wire.errors import XyroError
from xyro.wire.questions import FindPart
from xyro.wire.urls import host_of, partition_of

if TYPE_CHECKING:
    from xyro.service.node.command_sender import CommandSender
    from xyro.service.node.load_loop import LoadLoop
    from xyro.service.node.page_lookup import PageLookup

AT_ONCE = 64
"""parts that are asked for at once"""


class PartRequests:
    """The parts that one node has asked for."""

    def __init__(self, load_loop: LoadLoop, lookup: PageLookup, commands: CommandSender) -> None:
        self._load_loop = load_loop
        self._lookup = lookup
        self._commands = commands
        self._asked: dict[str, asyncio.Task[None]] = {}

    def look(self) -> None:
        """Ask for what documents wait for now."""
        self._load_loop.wanted(self._ask_for)

    def _ask_for(self, urls: list[str]) -> None:
        for url in urls:
            if self._lookup.is_here(url):
                if (part := self._lookup.part(url, False)) is not None:
                    self._load_loop.supply(url, part)
            elif url not in self._asked and len(self._asked) < AT_ONCE:
                task = self._asked[url] = asyncio.create_task(self._ask(url))
                task.add_done_callback(partial(self._answered, url))

    def _answered(self, url: str, _: asyncio.Task[None]) -> None:
        del self._asked[url]

    async def _ask(self, url: str) -> None:
        partition = partition_of(host_of(url), self._commands.partitions)
        try:
            answer: Any = await self._commands.send(partition, partial(FindPart, url=url))
        except XyroError:  # the crawl stops, or a partition failed: the document waits
            return
        if answer is not None:
            body, charset, moved = answer
            self._load_loop.supply(url, StoredPart(body, charset, moved))
