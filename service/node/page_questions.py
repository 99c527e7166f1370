"""Asks partitions about single pages by messages, wherever they live (wire/questions.py); plug-ins are handed this.

Many pages are asked for some at a time, so that neither the partition nor who asks stops anybody for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from xyro.metadata.rows import RefreshRow, unpack_refresh
from xyro.metadata.states import State
from xyro.service.node.command_sender import CommandSender
from xyro.wire.ids import LocalPage, PageId, join, split
from xyro.wire.questions import DescribePages, FindPages, MatchPages
from xyro.wire.urls import host_of, partition_of

AT_ONCE = 250
"""pages in one DescribePages: some 5 ms"""
URLS_AT_ONCE = 1_000
SCANNED_AT_ONCE = 4_000
"""pages in one MatchPages: some 8 ms"""


class PageFacts(NamedTuple):
    """A known page, as its partition knows it now."""

    page: PageId
    url: str
    state: State
    row: RefreshRow | None
    """None: no order of it was ever settled"""


class PageMatch(NamedTuple):
    """A page that a target (a URL or a pattern) names. `host`: (partition, number of the host there)."""

    target: str
    page: PageId
    host: tuple[int, int]


class PageQuestions:
    """The questions of one node. All may raise MachineError: the crawl stops, or a partition failed."""

    def __init__(self, commands: CommandSender) -> None:
        self._commands = commands

    async def find(self, urls: Iterable[str]) -> list[PageMatch]:
        """Return the pages of those canonical URLs that are known, in no order."""
        parts: dict[int, list[str]] = {}
        for url in urls:
            parts.setdefault(partition_of(host_of(url), self._commands.partitions), []).append(url)
        found: list[PageMatch] = []
        for partition, part in parts.items():
            for first in range(0, len(part), URLS_AT_ONCE):
                some = tuple(part[first : first + URLS_AT_ONCE])
                places = await self._commands.send(partition, partial(FindPages, urls=some))
                for url, (page, host) in zip(some, places, strict=True):
                    if page >= 0:
                        found.append(PageMatch(url, join(partition, page), (partition, host)))
        return found

    async def describe(self, pages: Sequence[PageId]) -> list[PageFacts]:
        """Return what is known of these pages, in their order."""
        facts: list[PageFacts] = []
        for first in range(0, len(pages), AT_ONCE):
            facts += await self._describe(pages[first : first + AT_ONCE])
        return facts

    async def _describe(self, pages: Sequence[PageId]) -> list[PageFacts]:
        parts: dict[int, list[LocalPage]] = {}
        for page in pages:
            partition, local = split(page)
            parts.setdefault(partition, []).append(local)
        asked = (self._commands.send(q, partial(DescribePages, pages=tuple(part))) for q, part in parts.items())
        answers = dict(zip(parts, map(iter, await asyncio.gather(*asked)), strict=True))
        return [_facts(page, *next(answers[split(page)[0]])) for page in pages]

    async def match(self, patterns: Sequence[str]) -> AsyncIterator[PageMatch]:
        """Yield the known pages that fit these patterns, of one partition after the other."""
        for partition in range(self._commands.partitions):
            first = LocalPage(0)
            while first >= 0:
                ask = partial(MatchPages, patterns=tuple(patterns), first=first, limit=SCANNED_AT_ONCE)
                first, found = await self._commands.send(partition, ask)
                for number, page, host in found:
                    yield PageMatch(patterns[number], join(partition, page), (partition, host))


def _facts(page: PageId, url: str, state: int, row: bytes) -> PageFacts:
    return PageFacts(page, url, State(state), unpack_refresh(row) if row else None)
