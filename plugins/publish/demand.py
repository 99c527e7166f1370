"""Computes how long before a notice its pages have to be ordered, from all that is promised of their hosts.

Notices of many subscriptions may be due at once (a thousand daily ones, made in a minute). A host then has to be read
for all of them within the lead, so the lead is that of all pages of the host that any subscription stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from xyro.plugins.publish.target_pages import Host, TargetPages
from xyro.refresh.subscriptions import lead
from xyro.service.node.slicing import unhurried
from xyro.wire.ids import PageId

if TYPE_CHECKING:
    from xyro.service.node.services import Services

TYPICAL = 0.5
"""seconds that a page takes, where politeness is switched off"""
AGAIN = 60.0
"""seconds after which pages are counted again: patterns gain some"""
GROWN = 1.25


class Demand:
    """`count` now and then, `lead` of a target. Host -> distinct pages that are promised."""

    def __init__(self, services: Services, pages: TargetPages) -> None:
        self.pages = pages
        self.services = services
        self._hosts: Counter[Host] = Counter()
        self._counted_at = -AGAIN

    async def count(self, targets: Collection[str]) -> bool:
        """Count the pages of distinct targets anew, if that was long ago. True: a host has many more than before."""
        now = self.services.clock.monotonic()
        if now < self._counted_at + AGAIN:
            return False
        self._counted_at = now
        counted, hosts = set[PageId](), Counter[Host]()
        async for target in unhurried(targets, 1):
            new = {page: host for page, host in self.pages.places(target) if page not in counted}
            counted.update(new)
            hosts.update(new.values())
        before, self._hosts = self._hosts, hosts
        return any(count > GROWN * before[host] for host, count in hosts.items())

    def lead(self, target: str) -> float:
        """Seconds before the notice that its pages are ordered: by what is promised of their hosts, and politeness."""
        own = Counter(host for _, host in self.pages.places(target))
        polite = self.services.settings.politeness
        delay = polite.min_delay if polite.delay is None else polite.delay
        return lead((max(pages, self._hosts[host]), delay + TYPICAL) for host, pages in own.items())
